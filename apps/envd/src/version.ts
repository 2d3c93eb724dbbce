/**
 * Version that a sandbox reports as `envdVersion`. Published clients enable features by comparing it, so it must be the
 * highest version whose client features all exist here:
 *
 * | version | what clients do from this version on | supported |
 * | --- | --- | --- |
 * | 0.1.0 | accept the sandbox at all | yes |
 * | 0.2.0 | secured sandboxes (`X-Access-Token`) | yes |
 * | 0.3.0 | `stdin: false` in Start | yes |
 * | 0.4.0 | leave the user out and rely on the default user | yes |
 * | 0.5.2 | CloseStdin | yes |
 * | 0.5.7 | octet-stream and gzip uploads | yes |
 * | 0.6.2 | metadata with uploads, shown in entries | yes |
 * | 0.6.3 | entries in watch events | yes |
 * | 0.6.4 | watch network mounts on request | yes |
 *
 * Features above 0.6.4 concern only the protocol between a node and envd. Ours are built from one source, so they need
 * no version checks.
 */
export const envdVersion = '0.6.13'
