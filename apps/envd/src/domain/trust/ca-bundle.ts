/**
 * The system's CA bundle: a text of concatenated PEM certificates. Marker lines, which are comments in that format,
 * enclose the CA of the egress proxy.
 */
import { removeCertificates } from './certificates.ts'

const begin = '# begin of the authority of the atoll egress\n'
const end = '# end of the authority of the atoll egress\n'
/** Excludes `#`, so that a missing end marker does not swallow other certificates. */
const section = new RegExp(`${begin}[^#]*${end}`, 'g')

/**
 * Replaces the CA of the egress proxy, `old`, by `caBundle`. A tool that regenerates the bundle drops the markers,
 * so the old certificates are removed by content too.
 */
export function replaceAuthority(
  bundle: string,
  { caBundle, old }: { readonly caBundle: string; readonly old: string },
): string {
  const others = removeCertificates(bundle.replaceAll(section, ''), old + caBundle)
  const gap = others === '' || others.endsWith('\n') ? '' : '\n'
  return `${others}${gap}${begin}${caBundle}${end}`
}

export function hasOtherAuthorities(bundle: string): boolean {
  return bundle.replaceAll(section, '').includes('-----BEGIN CERTIFICATE-----')
}
