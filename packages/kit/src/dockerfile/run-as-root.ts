import type { DockerfileStep } from './stage.ts'

/**
 * Runs the steps as root in `/`, as Docker and the template builder of the SDK do. Sandboxes get the default user and
 * directory unless a step sets them.
 */
export function runAsRoot<Step extends { readonly type: string }>(
  steps: readonly Step[],
): (Step | DockerfileStep)[] {
  const sets = (type: string) => steps.some((step) => step.type === type)
  return [
    setting('USER', 'root'),
    setting('WORKDIR', '/'),
    ...steps,
    ...(sets('USER') ? [] : [setting('USER', 'user')]),
    ...(sets('WORKDIR') ? [] : [setting('WORKDIR', '/home/user')]),
  ]
}

function setting(type: 'USER' | 'WORKDIR', value: string): DockerfileStep {
  return { type, args: [value], title: `${type} ${value}` }
}
