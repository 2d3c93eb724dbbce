/**
 * Network rules of a sandbox as the node and the egress proxy enforce them. The only declaration: the API's domain, the
 * node's records and the control messages of the egress proxy derive their types and schemas from this file. Requests
 * of clients have another form, `NetworkConfig`, from which the API makes these rules.
 *
 * The node stores these values. A new field must be optional, or records need a new format version.
 */
import { z } from 'zod'

/** External SOCKS5 proxy for the outgoing TCP connections of a sandbox. */
export const EgressProxy = z
  .object({
    /** `host:port`, where the host is a name or an IPv4 address. */
    address: z.string(),
    username: z.string().exactOptional(),
    /** Secret: never logged, and sent only to the proxy. */
    password: z.string().exactOptional(),
  })
  .readonly()

export type EgressProxy = z.infer<typeof EgressProxy>

/** Headers for requests to one name or to all names below it, as in `allowNames`. */
export const DomainHeaders = z
  .object({
    pattern: z.string(),
    /** Replace request headers of the same names. The values are secrets: only the server may receive them. */
    headers: z.record(z.string(), z.string()).readonly(),
  })
  .readonly()

export type DomainHeaders = z.infer<typeof DomainHeaders>

/** Certificate authority of one sandbox, in PEM. The egress proxy poses as other servers with its certificates. */
export const Authority = z
  .object({
    certificate: z.string(),
    /** PKCS #8. Secret: given only to the egress proxy. */
    key: z.string(),
  })
  .readonly()

export type Authority = z.infer<typeof Authority>

const domains = z.array(DomainHeaders).readonly()

const shape = {
  /** IPv4 addresses and CIDR ranges, as in `denyOut`. */
  allowOut: z.array(z.string()).readonly(),
  denyOut: z.array(z.string()).readonly(),
  /**
   * Also allowed: `example.com` for the name itself, `*.example.com` for all names below. Written as `normalizeName`
   * does.
   */
  allowNames: z.array(z.string()).readonly().exactOptional(),
  /** Absent: connections go directly to their destination. */
  proxy: EgressProxy.exactOptional(),
  /** Headers that the egress proxy sets on outgoing requests. The authority is absent until the rules are applied. */
  transforms: z
    .object({ domains, authority: Authority.exactOptional() })
    .readonly()
    .exactOptional(),
}

/**
 * Egress rules of a sandbox, on top of the addresses closed to all sandboxes. Order: allow `allowOut` and `allowNames`,
 * deny `denyOut`, allow everything else.
 */
export const NetworkRules = z.object(shape).readonly()

export type NetworkRules = z.infer<typeof NetworkRules>

/** Complete rules, as the egress proxy gets them. */
export const EgressRules = z
  .object({
    ...shape,
    allowNames: z.array(z.string()).readonly(),
    transforms: z.object({ domains, authority: Authority }).readonly().exactOptional(),
  })
  .readonly()

export type EgressRules = z.infer<typeof EgressRules>

/** How requests reach a sandbox. The edge enforces it. */
export const Ingress = z
  .object({
    /** If present, required on every port but that of envd. */
    trafficAccessToken: z.string().exactOptional(),
    /** Host header that programs in the sandbox see; `${PORT}` is replaced by the port. */
    maskRequestHost: z.string().exactOptional(),
    /** Ports on which the sandbox itself speaks TLS. */
    httpsPorts: z.array(z.number()).readonly(),
  })
  .readonly()

export type Ingress = z.infer<typeof Ingress>
