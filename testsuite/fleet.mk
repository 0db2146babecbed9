# fleet
