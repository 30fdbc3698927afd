import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { once } from 'node:events';
import { readFileSync } from 'node:fs';
import { promisify } from 'node:util';
import type { BuiltImage } from './build-image.ts';

const run = promisify(execFile);

export interface ContainerOptions {
  readonly image: BuiltImage;
  /** Folder of this machine for /tmp; without it /tmp is as empty as the cache folder. */
  readonly temporary?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** Instead of the entry point of the image. */
  readonly entrypoint?: readonly string[];
}

/**
 * A pod with `readOnlyRootFilesystem`, `runAsNonRoot`, no privilege escalation, no capabilities, and emptyDirs for /tmp and the cache. No
 * shell can be executed in it.
 */
const START = `
mount --make-rprivate / && mount --bind "$ROOT" "$ROOT" && mount -o remount,bind,ro "$ROOT"
mount -t proc proc "$ROOT/proc" && mount --rbind /dev "$ROOT/dev"
if [ -n "$TEMPORARY" ]; then mount --bind "$TEMPORARY" "$ROOT/tmp"; else mount -t tmpfs -o mode=1777 tmpfs "$ROOT/tmp"; fi
mount -t tmpfs -o "uid=$OWNER,gid=$GROUP,mode=0700" tmpfs "$ROOT$FOLDER"
for shell in dash bash; do mount --bind /dev/null "$ROOT/usr/bin/$shell"; done
exec chroot "$ROOT" /usr/bin/setpriv --reuid="$OWNER" --regid="$GROUP" --clear-groups --no-new-privs --bounding-set=-all --inh-caps=-all \
  /usr/bin/env -i -C "$FOLDER" "$@"`;

function command({ image, temporary = '', environment = {}, entrypoint }: ContainerOptions, words: readonly string[]) {
  const [user = '', group = ''] = image.user.split(':');
  const inside = Object.entries({ PATH: '/usr/local/bin:/usr/bin', HOME: image.folder, NO_COLOR: '1', ...environment });
  const outside = { ROOT: image.root, TEMPORARY: temporary, OWNER: user, GROUP: group, FOLDER: image.folder };
  return {
    words: [
      ...['--mount', '--pid', '--fork', '--kill-child', 'sh', '-ec', START, 'start'],
      ...inside.map(([name, value]) => `${name}=${value}`),
      ...(entrypoint ?? image.entrypoint),
      ...(words.length === 0 ? image.command : words),
    ],
    environment: { ...process.env, ...outside },
  };
}

/** Starts the image and waits until it ends; rejects as `execFile` does. Without words it is started with those of `CMD`. */
export function runContainer(options: ContainerOptions, ...words: readonly string[]) {
  const { words: all, environment } = command(options, words);
  return run('unshare', all, { env: environment, maxBuffer: 1 << 26 });
}

/** A started image. */
export class Container implements AsyncDisposable {
  readonly #child: ChildProcess;
  #output = '';

  constructor(options: ContainerOptions, ...words: readonly string[]) {
    const { words: all, environment } = command(options, words);
    this.#child = spawn('unshare', all, { env: environment, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.#child.stdout, this.#child.stderr])
      stream?.on('data', (chunk: Buffer) => {
        this.#output += chunk.toString();
      });
  }

  get output(): string {
    return this.#output;
  }

  /** Its process 1, as this machine numbers it. */
  get pid(): number {
    const { pid } = this.#child;
    return Number(readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim());
  }

  /** Sends SIGTERM to its process 1, as kubelet does, and returns the exit code. */
  async stop(): Promise<number | null> {
    process.kill(this.pid, 'SIGTERM');
    await once(this.#child, 'close');
    return this.#child.exitCode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    if (this.#child.exitCode !== null || this.#child.signalCode !== null) return;
    this.#child.kill('SIGKILL');
    await once(this.#child, 'close');
  }
}
