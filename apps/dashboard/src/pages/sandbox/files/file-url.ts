export function fileUrl(sandboxId: string, kind: 'file' | 'download', path: string): string {
  return `/bff/sandboxes/${encodeURIComponent(sandboxId)}/${kind}?path=${encodeURIComponent(path)}`
}
