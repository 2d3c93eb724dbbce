/** Part of the server whose steps are measured: calls of the node protocol, or of the runtime on the node. */
export type MeasuredPart = 'node' | 'runtime'

/** Runs a step and records its duration and outcome. */
export type MeasureStep = <T>(
  part: MeasuredPart,
  name: string,
  work: () => Promise<T>,
) => Promise<T>
