/**
 * First bytes of a tunnel: the edge names sandbox, generation and port in one line, the node answers with one byte, and
 * then the bytes of both sides pass through. The generation keeps a delayed edge away from a later run of the sandbox.
 */
export interface TunnelHead {
  readonly sandboxId: string
  readonly generation: number
  readonly port: number
}

export const opened = 0x2b
/** Nothing listens on the port, or the sandbox does not run here in this generation. */
export const refused = 0x2d

export const maxHeadBytes = 128

export function formatHead({ sandboxId, generation, port }: TunnelHead): string {
  return `${sandboxId} ${generation} ${port}\n`
}

export function parseHead(line: string): TunnelHead | undefined {
  const [, sandboxId, generation, port] = /^(\w{1,64}) (\d{1,10}) (\d{1,5})$/.exec(line) ?? []
  if (sandboxId === undefined) return undefined
  return { sandboxId, generation: Number(generation), port: Number(port) }
}
