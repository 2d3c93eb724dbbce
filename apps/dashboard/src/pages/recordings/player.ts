import { signal } from '@preact/signals'
import { Terminal } from '@xterm/xterm'
import type { Cast, CastEvent } from '../../model/cast.ts'
import { allowTerminalStyles } from '../sandbox/terminal/style-nonce.ts'
import { terminalOptions } from '../sandbox/terminal/terminal-options.ts'

const stepMs = 50

/** Draws a recording in a terminal, at any time of it. */
export class Player {
  readonly position = signal(0)
  readonly isPlaying = signal(false)
  readonly #cast: Cast
  readonly #terminal: Terminal
  #speed = 1
  #next = 0
  #timer: ReturnType<typeof setInterval> | undefined

  constructor(host: HTMLElement, cast: Cast) {
    allowTerminalStyles()
    this.#cast = cast
    this.#terminal = new Terminal({ ...terminalOptions, ...cast.size, disableStdin: true })
    this.#terminal.open(host)
  }

  setSpeed(speed: number): void {
    this.#speed = speed
  }

  play(): void {
    if (this.position.value >= this.#cast.duration) this.seek(0)
    let before = performance.now()
    clearInterval(this.#timer)
    this.isPlaying.value = true
    this.#timer = setInterval(() => {
      const elapsed = (performance.now() - before) / 1000
      before = performance.now()
      this.#drawUntil(Math.min(this.#cast.duration, this.position.value + elapsed * this.#speed))
      if (this.position.value >= this.#cast.duration) this.pause()
    }, stepMs)
  }

  pause(): void {
    clearInterval(this.#timer)
    this.isPlaying.value = false
  }

  seek(seconds: number): void {
    if (seconds < this.position.value) this.#restart()
    this.#drawUntil(seconds)
  }

  close(): void {
    this.pause()
    this.#terminal.dispose()
  }

  #restart(): void {
    this.#terminal.reset()
    this.#terminal.resize(this.#cast.size.cols, this.#cast.size.rows)
    this.#next = 0
  }

  #drawUntil(seconds: number): void {
    this.position.value = seconds
    let event = this.#cast.events[this.#next]
    while (event && event.at <= seconds) {
      this.#draw(event)
      event = this.#cast.events[(this.#next += 1)]
    }
  }

  #draw(event: CastEvent): void {
    if ('output' in event) return this.#terminal.write(event.output)
    // Output before the change was printed at the old size, and has to be drawn first.
    return this.#terminal.write('', () =>
      this.#terminal.resize(event.resize.cols, event.resize.rows),
    )
  }
}
