/** Source and steps of a template build. */
export interface Recipe {
  readonly fromImage?: string
  /** Registry credentials for `fromImage`. */
  readonly imageLogin?: ImageLogin
  readonly fromTemplate?: string
  /** First line of the build log. */
  readonly originNote?: string
  readonly steps: readonly RecipeStep[]
  /** Ignores all cached layers of earlier builds. */
  readonly force: boolean
  /** Runs in every new sandbox from the beginning. */
  readonly startCommand?: string
  /** Exits with 0 once a sandbox is ready. */
  readonly readyCommand?: string
}

export interface ImageLogin {
  readonly username: string
  /** Secret: never log or store. */
  readonly password: string
}

export interface RecipeStep {
  readonly type: string
  readonly args: readonly string[]
  /** Hash of the uploaded files that the step copies. */
  readonly filesHash?: string
  /** Ignores cached layers of earlier builds for this step and all later ones. */
  readonly force: boolean
}
