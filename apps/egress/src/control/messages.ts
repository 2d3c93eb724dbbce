/**
 * What the agent of the node says to the egress process, each as a line of JSON over a socket that only root can open, and
 * what comes back. The agent knows all rules; the process keeps none over its own end.
 */
import { z } from 'zod'

const Rules = z.object({
  allowOut: z.array(z.string()),
  denyOut: z.array(z.string()),
  allowNames: z.array(z.string()),
  proxy: z
    .object({
      address: z.string(),
      username: z.string().exactOptional(),
      password: z.string().exactOptional(),
    })
    .exactOptional(),
  transforms: z
    .object({
      domains: z.array(
        z.object({ pattern: z.string(), headers: z.record(z.string(), z.string()) }),
      ),
      /** PEM both, the key as PKCS #8. */
      authority: z.object({ certificate: z.string(), key: z.string() }),
    })
    .exactOptional(),
})

/** By the address of the sandbox, which no other can send from. */
const Sandbox = z.object({ address: z.string(), rules: Rules.optional() })

export const Request = z.discriminatedUnion('kind', [
  /** All there is; whoever is not in it has no more connections. */
  z.object({
    kind: z.literal('begin'),
    closedRanges: z.array(z.string()),
    nameservers: z.array(z.string()),
    /** PEM: who may certify servers, beyond those whom Node.js and the system know. */
    certificates: z.array(z.string()),
    sandboxes: z.array(Sandbox),
  }),
  /** In force for open connections too when the answer comes. Without rules, nothing leaves any more. */
  z.object({ kind: z.literal('set'), sandbox: Sandbox }),
])

export type Request = z.infer<typeof Request>

export const Answer = z.object({
  /** What the process was started with: one of another build is to be replaced. */
  build: z.string(),
  pid: z.number(),
  /** Of the host: where TCP is led to, and where names are asked. */
  port: z.number(),
  namePort: z.number(),
})

export type Answer = z.infer<typeof Answer>

/** In ASCII, since to some readers of lines there are ends of them beyond it. */
export function toLine(message: object): string {
  const escape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return `${JSON.stringify(message).replaceAll(/[\u007f-\uffff]/g, escape)}\n`
}
