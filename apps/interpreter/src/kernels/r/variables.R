# Environment variables of a request.

# Sets variables and returns a function that puts back the earlier values.
set_variables <- function(variables) {
  variables <- variables[nzchar(names(variables)) & !grepl("=", names(variables), fixed = TRUE)]
  if (length(variables) == 0) return(function() NULL)
  earlier <- Sys.getenv(names(variables), unset = NA, names = TRUE)
  do.call(Sys.setenv, variables)
  function() {
    Sys.unsetenv(names(earlier))
    kept <- earlier[!is.na(earlier)]
    if (length(kept) > 0) do.call(Sys.setenv, as.list(kept))
  }
}
