import { execFile } from 'node:child_process';
import { existsSync, readFileSync, realpathSync } from 'node:fs';
import { chmod, cp, mkdir, symlink } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { type Instruction, parseDockerfile, type Stage } from './dockerfile.ts';

const run = promisify(execFile);

/** What a container engine would keep of an image: its files, and how it is started. */
export interface BuiltImage {
  readonly root: string;
  readonly user: string;
  readonly folder: string;
  readonly entrypoint: readonly string[];
  readonly command: readonly string[];
}

/** Makes the files of a base image in an empty folder that does not exist yet. */
export type BaseImage = (image: string, root: string) => Promise<void>;

/**
 * Executes the instructions of the Dockerfile of a checkout as a container engine does, each stage in a folder of its own below
 * `folder`. `RUN` is executed by the shell of that folder, as root, with mount and process namespaces of its own.
 */
export async function buildImage(checkout: string, folder: string, base: BaseImage): Promise<BuiltImage> {
  const stages = new Map<string | undefined, string>();
  let image: BuiltImage | undefined;
  for (const [index, stage] of parseDockerfile(readFileSync(join(checkout, 'Dockerfile'), 'utf8')).entries()) {
    const root = join(folder, String(index));
    await base(stage.base, root);
    image = await buildStage(stage, { root, user: '0:0', folder: '/', entrypoint: [], command: [] }, async (from) => {
      if (from === undefined) return await writeContext(checkout, join(folder, 'context'));
      return stages.get(from) ?? Promise.reject(new Error(`there is no stage ${from}`));
    });
    stages.set(stage.name, root);
  }
  if (image === undefined) throw new Error('the Dockerfile has no stage');
  return image;
}

type Source = (stage: string | undefined) => Promise<string>;

async function buildStage(stage: Stage, initial: BuiltImage, source: Source): Promise<BuiltImage> {
  let image = initial;
  const environment: Record<string, string> = {};
  for (const { name, rest } of stage.instructions) {
    if (name === 'ARG') environment[rest.split('=')[0] ?? ''] = rest.split('=')[1] ?? '';
    else if (name === 'RUN') await runInside(image, rest, environment);
    else if (name === 'COPY') await copyInto(image, rest, source);
    else image = { ...image, ...settingsOf({ name, rest }) };
    if (name === 'WORKDIR') await mkdir(join(image.root, rest), { recursive: true });
  }
  return image;
}

function settingsOf({ name, rest }: Instruction): Partial<BuiltImage> {
  if (name === 'USER') return { user: rest };
  if (name === 'WORKDIR') return { folder: rest };
  if (name === 'ENTRYPOINT') return { entrypoint: JSON.parse(rest) as string[] };
  if (name === 'CMD') return { command: JSON.parse(rest) as string[] };
  return {};
}

/** `COPY --from=build /app /app`: the content of a folder goes into the target, a file becomes the target or goes into it. */
async function copyInto({ root, folder }: BuiltImage, rest: string, source: Source): Promise<void> {
  const words = rest.split(' ');
  const [, from] = /^--from=(\w+)$/.exec(words[0] ?? '') ?? [];
  const target = words.at(-1) ?? '';
  const to = join(root, target.startsWith('/') ? target : join(folder, target));
  const origin = await source(from);
  for (const word of words.slice(from === undefined ? 0 : 1, -1)) {
    const path = join(origin, word);
    const into = target.endsWith('/') ? join(to, word) : to;
    await mkdir(dirname(into), { recursive: true });
    // `cp` of Node.js would resolve symbolic links.
    await run('cp', ['-a', '--no-preserve=ownership', '--no-target-directory', path, into]);
  }
}

/** The files of the checkout that a container engine sends to the build: those that .dockerignore names with `!`. */
async function writeContext(checkout: string, context: string): Promise<string> {
  const [first, ...names] = readFileSync(join(checkout, '.dockerignore'), 'utf8').split('\n').filter(Boolean).slice(1);
  if (first !== '*' || names.some((name) => !/^![\w./-]+$/.test(name)))
    throw new Error('.dockerignore must be a comment, * and names with !');
  for (const name of existsSync(context) ? [] : names.map((name) => name.slice(1)))
    await cp(join(checkout, name), join(context, name), { recursive: true });
  return context;
}

/** Name resolution and the cache of npm come from the machine, as from a container engine; so does an authority that it trusts. */
const PREPARE = `
mount --make-rprivate / && mount --bind "$ROOT" "$ROOT"
mount -t proc proc "$ROOT/proc" && mount --rbind /dev "$ROOT/dev"
mount --bind /etc/resolv.conf "$ROOT/etc/resolv.conf"
if [ -d "$NPM_CACHE" ]; then mkdir -p "$ROOT/root/.npm" && mount --bind "$NPM_CACHE" "$ROOT/root/.npm"; fi
if [ -n "$AUTHORITIES" ]; then mount --bind "$AUTHORITIES" "$ROOT/media"; fi
exec chroot "$ROOT" /usr/bin/env -i HOME=/root PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  DEBIAN_FRONTEND=noninteractive NPM_CONFIG_PREFER_OFFLINE=true \${AUTHORITIES:+NODE_EXTRA_CA_CERTS=/media/\${NODE_EXTRA_CA_CERTS##*/}} \
  "$@"`;

async function runInside({ root, folder }: BuiltImage, script: string, more: Record<string, string>): Promise<void> {
  const authorities = process.env.NODE_EXTRA_CA_CERTS;
  const environment = {
    ...process.env,
    ROOT: root,
    NPM_CACHE: join(process.env.HOME ?? '', '.npm'),
    AUTHORITIES: authorities === undefined ? '' : dirname(authorities),
  };
  const inside = Object.entries({ ...more, FOLDER: folder }).map(([name, value]) => `${name}=${value}`);
  const shell = ['/bin/sh', '-c', `cd "$FOLDER" && ${script}`];
  const words = ['--mount', '--pid', '--fork', '--kill-child', 'sh', '-ec', PREPARE, 'run', ...inside, ...shell];
  await run('unshare', words, { env: environment, maxBuffer: 1 << 26 });
}

/**
 * The base images, as far as Sluice uses them. `debian:<suite>-slim` is the minimal variant of debootstrap; `node:24-<suite>-slim` adds
 * Node.js in /usr/local and npm, here those of this machine.
 */
export const debianBase =
  (debian: string): BaseImage =>
  async (image, root) => {
    await run('cp', ['-a', debian, root]);
    if (!image.startsWith('node:')) return;
    const local = join(root, 'usr/local');
    await cp(process.execPath, join(local, 'bin/node'));
    const npm = join(dirname(realpathSync((await run('which', ['npm'])).stdout.trim())), '..');
    await cp(npm, join(local, 'lib/node_modules/npm'), { recursive: true });
    await symlink('../lib/node_modules/npm/bin/npm-cli.js', join(local, 'bin/npm'));
    await chmod(join(local, 'lib/node_modules/npm/bin/npm-cli.js'), 0o755);
  };
