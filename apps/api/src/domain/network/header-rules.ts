import type { NetworkSettings } from '@atoll/contracts/network/config'
import type { DomainHeaders } from '@atoll/contracts/network/rules'
import { isBroadPattern, normalizeName } from '@atoll/kit/domain-name'
import { hopByHop } from '@atoll/kit/http/hop-by-hop'
import { invalid, quote } from './network-fault.ts'

/** Headers to set on outgoing requests, keyed by domain, as the creator of the sandbox sent them. */
export type HeaderRules = NonNullable<NetworkSettings['rules']>

type HeaderRule = HeaderRules[string][number]
type Headers = DomainHeaders['headers']

const limits = {
  domains: 10,
  domainLength: 128,
  headers: 20,
  nameLength: 64,
  valueLength: 2048,
  secrets: 32,
}

/** Error messages never repeat header values, which are usually secrets. */
export function checkHeaderRules(rules: HeaderRules, field: string): void {
  const domains = Object.keys(rules)
  if (domains.length > limits.domains) {
    throw invalid(field, `at most ${limits.domains} domains can have rules`)
  }
  const twice = doubleOf(domains.map(normalizeName))
  if (twice !== undefined) throw invalid(field, `${quote(twice)} appears twice`)
  for (const domain of domains) {
    if (domain.length > limits.domainLength || !isBroadPattern(domain)) {
      throw invalid(
        field,
        `${quote(domain)} is not a domain of at most ${limits.domainLength} characters, such as "api.example.com" or "*.example.com"`,
      )
    }
    checkRules(rules[domain] ?? [], `${field}.${domain}`)
  }
}

/** Rules that set at least one header. */
export function toDomainHeaders(rules: HeaderRules): DomainHeaders[] {
  return Object.entries(rules).flatMap(([domain, [rule]]) => {
    const headers = rule?.transform?.headers ?? {}
    return Object.keys(headers).length > 0 ? [{ pattern: normalizeName(domain), headers }] : []
  })
}

/** Names of the secrets that headers refer to, unique and in lower case. */
export function secretsIn(rules: readonly Pick<DomainHeaders, 'headers'>[]): string[] {
  const values = rules.flatMap(({ headers }) => Object.values(headers))
  return [...new Set(values.flatMap((value) => namesIn(value)))]
}

/** Replaces references by secret values. Drops headers that refer to a missing secret. */
export function fillSecrets(
  rules: readonly DomainHeaders[],
  secrets: ReadonlyMap<string, string>,
): DomainHeaders[] {
  return rules.flatMap(({ pattern, headers }) => {
    const filled = Object.entries(headers).flatMap(([name, value]) => {
      if (!namesIn(value).every((secret) => secrets.has(secret))) return []
      return [[name, value.replaceAll(reference, (_, secret: string) => secretOf(secret))] as const]
    })
    return filled.length > 0 ? [{ pattern, headers: Object.fromEntries(filled) }] : []
  })

  function secretOf(name: string): string {
    return secrets.get(name.toLowerCase()) ?? ''
  }
}

function namesIn(value: string): string[] {
  return Array.from(value.matchAll(reference), ([, name = '']) => name.toLowerCase())
}

/** Hides the header values. */
export function withoutValues(rules: HeaderRules): Record<string, { transform?: object }[]> {
  const hide = (headers: Headers) =>
    Object.fromEntries(Object.keys(headers).map((name) => [name, hidden]))
  const shown = ({ transform }: HeaderRule) =>
    transform
      ? { transform: { ...(transform.headers && { headers: hide(transform.headers) }) } }
      : {}
  return Object.fromEntries(
    Object.entries(rules).map(([domain, list]) => [domain, list.map(shown)]),
  )
}

const hidden = '***'

function checkRules(list: readonly HeaderRule[], field: string): void {
  if (list.length > 1) throw invalid(field, 'a domain can have only one rule')
  const headers = list[0]?.transform?.headers ?? {}
  const names = Object.keys(headers)
  if (names.length > limits.headers) {
    throw invalid(field, `at most ${limits.headers} headers can be set`)
  }
  const twice = doubleOf(names.map((name) => name.toLowerCase()))
  if (twice !== undefined) throw invalid(field, `the header ${quote(twice)} appears twice`)
  for (const name of names) checkHeader(name, headers[name] ?? '', field)
  if (secretsIn([{ headers }]).length > limits.secrets) {
    throw invalid(field, `at most ${limits.secrets} secrets can be referenced`)
  }
}

function checkHeader(name: string, value: string, field: string): void {
  if (name.length > limits.nameLength || !headerName.test(name)) {
    throw invalid(
      field,
      `${quote(name)} is not a header of at most ${limits.nameLength} characters`,
    )
  }
  if (framing.has(name.toLowerCase())) {
    throw invalid(field, `the header ${quote(name)} controls the connection and cannot be set`)
  }
  const place = `${field}.${name}`
  if (value.length > limits.valueLength || !headerValue.test(value)) {
    throw invalid(
      place,
      `must be at most ${limits.valueLength} characters of Latin-1 without control characters`,
    )
  }
  if (value === hidden) {
    throw invalid(
      place,
      `"${hidden}" is the placeholder that responses show; send the value itself`,
    )
  }
  const rest = value.replaceAll(reference, '')
  if (rest.includes('${e2b.identity.')) {
    throw invalid(place, 'refers to an identity token, which Atoll does not support')
  }
  if (rest.includes('${e2b.')) {
    throw invalid(place, 'has an invalid reference; refer to a secret as "${e2b.secrets.NAME}"')
  }
}

function doubleOf(words: readonly string[]): string | undefined {
  return words.find((word, at) => words.indexOf(word) < at)
}

const headerName = /^[!#$%&'*+\-.^_`|~0-9A-Za-z]+$/
const headerValue = /^[\t\x20-\x7e\x80-\xff]*$/
const reference = /\$\{e2b\.secrets\.([a-zA-Z0-9_-]{1,128})\}/g

/** Headers that control message framing and routing. */
const framing = new Set([...hopByHop, 'content-length', 'expect', 'host'])
