import { signal } from '@preact/signals'

interface Toast {
  readonly id: number
  readonly text: string
  readonly isBad: boolean
}

const toasts = signal<readonly Toast[]>([])
let lastId = 0

export function showToast(text: string, isBad = false): void {
  const toast = { id: (lastId += 1), text, isBad }
  toasts.value = [...toasts.value.slice(-3), toast]
  setTimeout(() => dismiss(toast.id), isBad ? 10_000 : 4_000)
}

export function showError(error: unknown): void {
  showToast(error instanceof Error ? error.message : String(error), true)
}

function dismiss(id: number): void {
  toasts.value = toasts.value.filter((toast) => toast.id !== id)
}

export function Toasts() {
  return (
    <div class="toasts" role="status">
      {toasts.value.map(({ id, text, isBad }) => (
        <div key={id} class={isBad ? 'toast bad' : 'toast'} onClick={() => dismiss(id)}>
          {text}
        </div>
      ))}
    </div>
  )
}
