/**
 * The list of authorities that programs of the system trust, one text with one certificate after the other. Ours stands
 * between two lines by which it is found again; what is no certificate is a comment there.
 */
import { removeCertificates } from './certificates.ts'

const begin = '# begin of the authority of the atoll egress\n'
const end = '# end of the authority of the atoll egress\n'
/** No comment inside: a lost end must not take others' certificates with it. */
const section = new RegExp(`${begin}[^#]*${end}`, 'g')

/** `old` is what was trusted before. A tool of the system that makes the list anew puts it in without our lines. */
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
