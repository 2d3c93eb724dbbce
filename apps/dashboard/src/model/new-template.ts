export interface NewTemplateForm {
  readonly name: string
  readonly dockerfile: string
  readonly startCommand: string
  readonly readyCommand: string
  readonly cpuCount: string
  readonly memoryMb: string
}

/** Returns the body of `POST /templates`, or of a rebuild, which keeps the name. */
export function toBuildRequest(form: NewTemplateForm, isRebuild: boolean) {
  const start = form.startCommand.trim()
  const ready = form.readyCommand.trim()
  return {
    dockerfile: form.dockerfile,
    ...(!isRebuild && { alias: form.name.trim() }),
    ...(start && { startCmd: start }),
    ...(ready && { readyCmd: ready }),
    cpuCount: Number(form.cpuCount),
    memoryMB: Number(form.memoryMb),
  }
}
