import { join } from 'node:path'
import type { CatalogueRecipe } from './catalogue.ts'
import { baseRecipe } from './recipe.ts'

const files = join(import.meta.dirname, '../../desktop')

/** Programs that the packages run. */
const commands = [
  ...[
    'gtk-launch',
    'netstat',
    'pgrep',
    'scrot',
    'startxfce4',
    'st',
    'chromium',
    'xfce4-session',
    'xdg-open',
    'xdotool',
    'xdpyinfo',
  ],
  ...['xfdesktop', 'xfwm4', 'xrandr'],
]

/** Template of the published desktop packages: XFCE on a virtual screen, already running in the memory of new sandboxes. */
export const desktop: CatalogueRecipe = {
  templateId: 'desktop',
  name: 'desktop',
  alias: 'desktop',
  description: 'XFCE with a browser and a terminal for @e2b/desktop',
  leastMemoryMb: 2048,
  sizeBytes: 2_600_000_000,
  debian: {
    ...baseRecipe,
    name: 'desktop',
    revision: 1,
    packages: [
      ...baseRecipe.packages,
      'adwaita-icon-theme',
      'chromium',
      'dbus-x11',
      'desktop-file-utils',
      'elementary-xfce-icon-theme',
      'exo-utils',
      'file',
      'fonts-dejavu-core',
      'fonts-droid-fallback',
      'fonts-liberation',
      'fonts-noto-color-emoji',
      'libglib2.0-bin',
      'libgtk-3-bin',
      'librsvg2-common',
      'mousepad',
      'net-tools',
      'scrot',
      'shared-mime-info',
      'stterm',
      'thunar',
      'websockify',
      'x11-utils',
      'x11-xserver-utils',
      'x11vnc',
      'xauth',
      'xclip',
      'xdg-utils',
      'xdotool',
      'xfce4-appfinder',
      'xfce4-panel',
      'xfce4-session',
      'xfce4-settings',
      'xfdesktop4',
      'xfwm4',
      'xvfb',
    ],
    // The dependencies of noVNC bring a second Node.js.
    unpacked: [{ package: 'novnc', from: 'usr/share/novnc', to: 'opt/noVNC' }],
    excludedPaths: [
      ...baseRecipe.excludedPaths,
      // Tool (23 MB) for developers of graphics drivers.
      'path-exclude=/usr/lib/chromium/libVkLayer_khronos_validation.so*',
    ],
    check: [
      baseRecipe.check,
      'Xvfb -help',
      'x11vnc -version',
      'websockify --help',
      'test -x /opt/noVNC/utils/novnc_proxy',
      ...commands.map((command) => `command -v ${command}`),
    ].join(' && '),
    expectedSteps: 1080,
  },
  program: {
    from: join(files, 'root'),
    folders: ['etc', 'opt', 'usr'],
    to: '',
    library: { source: join(files, 'preload.c'), to: 'usr/lib/atoll/desktop.so' },
  },
  setup: {
    user: 'user',
    envVars: {
      // xdotool refuses to type characters outside ASCII without a UTF-8 locale.
      LANG: 'C.UTF-8',
      // The default, dconf, keeps a removed file open, which prevents a pause.
      GSETTINGS_BACKEND: 'keyfile',
    },
    startCommand: 'exec setsid /opt/atoll/desktop/start',
    readyCommand: 'test -e /tmp/.atoll-desktop/waiting',
  },
}
