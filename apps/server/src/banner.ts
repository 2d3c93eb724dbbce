import { localDomain } from './listen-address.ts'

/** Facts that `atoll up` prints after the start. */
export interface BannerFacts {
  readonly apiUrl: string
  readonly sandboxUrl: string
  /** Absent if the dashboard is off. */
  readonly dashboardUrl?: string | undefined
  readonly signInUrl?: string | undefined
  readonly dataDir: string
  readonly isDefaultDataDir: boolean
  /** Domain of `{port}-{sandboxID}` names. Default: localhost with the port. */
  readonly domain?: string | undefined
  /** Absent: no HTTPS. */
  readonly tls?: { readonly domain: string; readonly isLocalCa: boolean } | undefined
  readonly firstCredentials?: { readonly apiKey: string; readonly accessToken: string } | undefined
  readonly hasCredentials: boolean
}

export function renderBanner(facts: BannerFacts): string {
  return [
    'Atoll is running',
    '',
    ...addressLines(facts),
    ...(facts.dashboardUrl ? [`  Dashboard  ${facts.dashboardUrl}`] : []),
    '',
    ...signInLines(facts),
    ...credentialLines(facts),
    'For the E2B SDK and CLI:',
    '',
    ...exportLines(facts).map((line) => `  ${line}`),
    '',
    'Try it:',
    '',
    `  ${command(facts)} sandbox create`,
    `  ${command(facts)} sandbox exec <sandboxID> -- uname -a`,
    '',
    'Ctrl-C ends the server and leaves sandboxes running.',
    '',
  ].join('\n')
}

function addressLines({ tls, apiUrl, sandboxUrl }: BannerFacts): string[] {
  if (!tls) return [`  API        ${apiUrl}`, `  Sandboxes  ${sandboxUrl}`]
  return [
    `  API        https://api.${tls.domain}, and ${apiUrl} on this machine`,
    `  Sandboxes  https://{port}-{sandboxID}.${tls.domain}`,
  ]
}

function signInLines({ signInUrl, hasCredentials }: BannerFacts): string[] {
  if (!signInUrl || !hasCredentials) return []
  return [
    'Open the dashboard, signed in (this link works once, for an hour):',
    '',
    `  ${signInUrl}`,
    '',
  ]
}

function credentialLines({ firstCredentials, hasCredentials, dataDir }: BannerFacts): string[] {
  const file = `${dataDir}/credentials.json`
  if (firstCredentials) {
    return [
      `  API key       ${firstCredentials.apiKey}`,
      `  Access token  ${firstCredentials.accessToken}`,
      '',
      `  They are shown this once. A copy that only root can read is in ${file}`,
      '',
    ]
  }
  if (hasCredentials) return []
  return [`  There is no ${file}: use an API key of your own.`, '']
}

function exportLines(facts: BannerFacts): string[] {
  const known = facts.firstCredentials?.apiKey
  const kept = facts.hasCredentials ? `$(${command(facts)} key show)` : '<your API key>'
  const keyLine = `export E2B_API_KEY=${known ?? kept}`
  if (facts.tls) {
    const certificate = shellWord(`${facts.dataDir}/tls/ca.crt`)
    const trust = facts.tls.isLocalCa ? [`export NODE_EXTRA_CA_CERTS=${certificate}`] : []
    return [`export E2B_DOMAIN=${facts.tls.domain}`, keyLine, ...trust]
  }
  return [
    `export E2B_API_URL=${facts.apiUrl}`,
    `export E2B_SANDBOX_URL=${facts.sandboxUrl}`,
    `export E2B_DOMAIN=${facts.domain ?? localDomain(facts.sandboxUrl)}`,
    keyLine,
  ]
}

function command({ dataDir, isDefaultDataDir }: BannerFacts): string {
  return isDefaultDataDir ? 'bin/atoll' : `ATOLL_DATA_DIR=${shellWord(dataDir)} bin/atoll`
}

function shellWord(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", String.raw`'\''`)}'`
}

/** Renders the exit message; `leftRunning` is undefined when the node did not answer. */
export function renderStopMessage(leftRunning: number | undefined, facts: BannerFacts): string {
  if (leftRunning === 0) return 'Atoll has stopped. No sandboxes were running.\n'
  const number = leftRunning === undefined ? 'All' : String(leftRunning)
  const sandboxes = leftRunning === 1 ? '1 sandbox keeps' : `${number} sandboxes keep`
  return (
    `Atoll has stopped. ${sandboxes} running; the next start takes over.\n` +
    `To end everything: ${command(facts)} down\n`
  )
}
