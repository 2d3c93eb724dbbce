/** A build failure caused by the steps. Its message is for the author of the template. */
export class BuildError extends Error {
  override readonly name = 'BuildError'
  readonly step: string

  constructor(step: string, message: string, options?: ErrorOptions) {
    super(message, options)
    this.step = step
  }
}
