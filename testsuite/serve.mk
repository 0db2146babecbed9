# serve
