/** Sets environment variables. Returns a function that puts back the earlier values. */
export function applyVariables(
  environment: NodeJS.ProcessEnv,
  variables: Readonly<Record<string, string>>,
): () => void {
  const earlier = Object.keys(variables).map((name) => [name, environment[name]] as const)
  Object.assign(environment, variables)
  return () => {
    for (const [name, value] of earlier) {
      if (value === undefined) Reflect.deleteProperty(environment, name)
      else environment[name] = value
    }
  }
}
