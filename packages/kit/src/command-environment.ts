/**
 * Returns the environment for commands of the host: `env`, or that of this process, with English messages in UTF-8.
 * Callers compare messages such as "File exists", which the operator's locale would translate.
 */
export function commandEnvironment(env: NodeJS.ProcessEnv = process.env): NodeJS.ProcessEnv {
  return { ...env, LC_ALL: 'C.UTF-8' }
}
