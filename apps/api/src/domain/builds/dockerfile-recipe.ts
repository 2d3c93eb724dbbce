import type { Dockerfile } from './dockerfile.ts'
import { toStep } from './dockerfile.ts'
import type { Recipe, RecipeStep } from './recipe.ts'

/** Parent that FROM of a Dockerfile stands for in this installation. */
export interface DockerfileOrigin {
  readonly parent: { readonly fromImage: string } | { readonly fromTemplate: string }
  /** Explains in the build log what FROM was taken for. */
  readonly note: string | undefined
  /**
   * Whether the steps run with the user and the directory of the parent, as in Docker. Otherwise they run as root in
   * `/`, as in the template builder of the SDK.
   */
  readonly keepsPlace: boolean
}

export function toRecipe(
  { steps, startCommand }: Dockerfile,
  { parent, note, keepsPlace }: DockerfileOrigin,
): Recipe {
  return {
    ...parent,
    ...(note !== undefined && { originNote: note }),
    steps: keepsPlace ? steps : withSurroundings(steps),
    force: false,
    ...(startCommand !== undefined && { startCommand, readyCommand: 'sleep 20' }),
  }
}

/** Runs the steps as root in `/`. Sandboxes get the default user and directory unless the Dockerfile sets them. */
function withSurroundings(steps: readonly RecipeStep[]): RecipeStep[] {
  const sets = (type: string) => steps.some((step) => step.type === type)
  return [
    toStep('USER', ['root']),
    toStep('WORKDIR', ['/']),
    ...steps,
    ...(sets('USER') ? [] : [toStep('USER', ['user'])]),
    ...(sets('WORKDIR') ? [] : [toStep('WORKDIR', ['/home/user'])]),
  ]
}
