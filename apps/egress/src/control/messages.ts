/**
 * Messages between the node agent and the egress proxy: one line of JSON each, over a Unix socket that only root can
 * open. The agent owns all rules; the proxy holds them in memory only.
 */
import { EgressRules } from '@atoll/contracts/network/rules'
import { z } from 'zod'

/** A sandbox is identified by its source address, which no other sandbox can use. */
const Sandbox = z.object({ address: z.string(), rules: EgressRules.optional() })

export const Request = z.discriminatedUnion('kind', [
  /** Complete state. Connections of sandboxes that are not listed are closed. */
  z.object({
    kind: z.literal('begin'),
    closedRanges: z.array(z.string()),
    nameservers: z.array(z.string()),
    /** PEM certificates of CAs to trust for upstream servers, in addition to those of Node.js and the system. */
    certificates: z.array(z.string()),
    sandboxes: z.array(Sandbox),
  }),
  /**
   * Replaces the rules of one sandbox, for open connections too, before the reply is sent. No rules: nothing may leave.
   */
  z.object({ kind: z.literal('set'), sandbox: Sandbox }),
  /** Changes nothing; the answer has the counts. */
  z.object({ kind: z.literal('count') }),
  /** Asks what was decided about the connections of a sandbox. */
  z.object({ kind: z.literal('decisions'), address: z.string() }),
  /** Asks which sandboxes were denied something since a time in Unix milliseconds. */
  z.object({ kind: z.literal('denied'), sinceMs: z.number() }),
])

export type Request = z.infer<typeof Request>

const Decision = z.object({
  /** Absent: the connection carried none. */
  name: z.string().optional(),
  address: z.string().optional(),
  port: z.number(),
  protocol: z.enum(['tcp', 'dns']),
  verdict: z.enum(['allowed', 'denied']),
  count: z.number(),
  firstMs: z.number(),
  lastMs: z.number(),
  sentBytes: z.number(),
  receivedBytes: z.number(),
})

export const Answer = z.object({
  /** Build ID that the process was started with. The agent replaces a process of another build. */
  build: z.string(),
  pid: z.number(),
  /** Host ports: `port` accepts redirected TCP connections, `namePort` DNS queries. */
  port: z.number(),
  namePort: z.number(),
  /** Numbers of decisions since the start of the process. Processes of earlier releases do not send them. */
  counts: z
    .object({
      connectionsAllowed: z.number(),
      connectionsRefused: z.number(),
      connectionsFailed: z.number(),
      namesAllowed: z.number(),
      namesRefused: z.number(),
    })
    .optional(),
  /** Only in answers to `decisions`. */
  decisions: z.array(Decision).optional(),
  /** Only in answers to `denied`. */
  denied: z.array(z.object({ address: z.string(), lastMs: z.number() })).optional(),
})

export type Answer = z.infer<typeof Answer>

/** Encodes as ASCII, because some line readers also split at Unicode line separators. */
export function toLine(message: object): string {
  const escape = (unit: string) => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`
  return `${JSON.stringify(message).replaceAll(/[\u007f-\uffff]/g, escape)}\n`
}
