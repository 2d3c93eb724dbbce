import type { Dockerfile } from '@atoll/kit/dockerfile/parse'
import { runAsRoot } from '@atoll/kit/dockerfile/run-as-root'
import type { DockerfileStep } from '@atoll/kit/dockerfile/stage'
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
  readonly keepsUserAndDirectory: boolean
}

export function toRecipe(
  { steps, startCommand }: Dockerfile,
  { parent, note, keepsUserAndDirectory }: DockerfileOrigin,
): Recipe {
  return {
    ...parent,
    ...(note !== undefined && { originNote: note }),
    steps: (keepsUserAndDirectory ? steps : runAsRoot(steps)).map(toRecipeStep),
    force: false,
    ...(startCommand !== undefined && { startCommand, readyCommand: 'sleep 20' }),
  }
}

function toRecipeStep({ type, args }: DockerfileStep): RecipeStep {
  return { type, args, force: false }
}
