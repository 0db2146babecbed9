# study
