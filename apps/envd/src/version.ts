/**
 * The version that a sandbox reports as its `envdVersion`. Published clients switch features on by comparing it, so it
 * names the highest gate below which everything that a client would use is really here:
 *
 * | version | what clients do from it on | here |
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
 * Gates above 0.6.4 are between a node and its daemon; ours come from one source and have none.
 */
export const envdVersion = '0.6.13'
