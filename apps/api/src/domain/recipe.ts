/** What a template is made of: another one, and what is done to it. */
export interface Recipe {
  readonly fromImage?: string
  /** Who may have the image. */
  readonly imageLogin?: ImageLogin
  readonly fromTemplate?: string
  readonly steps: readonly RecipeStep[]
  /** Nothing of earlier builds is used. */
  readonly force: boolean
  /** What new sandboxes have running from the beginning. */
  readonly startCommand?: string
  /** Succeeds once a sandbox is ready. */
  readonly readyCommand?: string
}

export interface ImageLogin {
  readonly username: string
  /** Not to be logged or kept. */
  readonly password: string
}

export interface RecipeStep {
  readonly type: string
  readonly args: readonly string[]
  /** Of the files that it brings in. */
  readonly filesHash?: string
  /** Nothing of earlier builds is used for it and what comes after it. */
  readonly force: boolean
}
