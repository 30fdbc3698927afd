import { spawn } from 'node:child_process';
import { once } from 'node:events';

export interface SyntheticOptions {
  readonly path: string;
  readonly packages: number;
  readonly revisions: number;
  readonly drafts: number;
}

/** Fills a new bare repository through one `git fast-import`: packages in 10 folders, each revision a commit on main and a tag. */
export async function synthesize(options: SyntheticOptions): Promise<void> {
  await git(['init', '--quiet', '--bare', '--initial-branch=main', options.path]);
  await fastImport(options.path, async (write) => {
    await write(commit('refs/heads/main', 'first', '') + file('README.md', 'synthetic\n'));
    for (let revision = 1; revision <= options.revisions; revision++)
      await writeRevision(write, options.packages, revision);
    for (let number = 0; number < options.drafts; number++) {
      const path = packageName(number);
      const ref = `refs/heads/drafts/${path}/next`;
      const kpt = { package: path, workspaceName: 'next' };
      await write(
        `${commit(ref, 'Intermediate commit', `kpt:${JSON.stringify(kpt)}`)}from refs/heads/main\n${file(`${path}/extra.yaml`, 'a: 1\n')}`,
      );
    }
  });
  await git(['-C', options.path, 'gc', '--quiet']);
}

/** Publishes a revision of every package on top of main, through one `git fast-import`. */
export async function addRevision(path: string, packages: number, revision: number): Promise<void> {
  await fastImport(path, async (write) => {
    await write('reset refs/heads/main\nfrom refs/heads/main^0\n\n');
    await writeRevision(write, packages, revision);
  });
}

type Write = (text: string) => Promise<void>;

async function fastImport(path: string, produce: (write: Write) => Promise<void>): Promise<void> {
  const child = spawn('git', ['-C', path, 'fast-import', '--quiet', '--force'], {
    stdio: ['pipe', 'ignore', 'inherit'],
  });
  await produce(async (text) => {
    if (!child.stdin.write(text)) await once(child.stdin, 'drain');
  });
  child.stdin.end();
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`git fast-import ended with ${code}`);
}

async function writeRevision(write: Write, packages: number, revision: number): Promise<void> {
  for (let number = 0; number < packages; number++) {
    const path = packageName(number);
    const kpt = { package: path, workspaceName: `w${revision}`, revision: `${revision}` };
    await write(
      commit('refs/heads/main', `Approving package revision ${path}/${revision}`, `kpt:${JSON.stringify(kpt)}`),
    );
    await write(files(path, number, revision));
    await write(`reset refs/tags/${path}/v${revision}\nfrom refs/heads/main\n\n`);
  }
}

export function packageName(number: number): string {
  return `team-${number % 10}/package-${number}`;
}

/** A Kptfile of about 1.5 kB. */
export function kptfile(number: number, revision: number): string {
  const conditions = Array.from({ length: 6 }, (_, index) =>
    [
      '  - message: update done',
      `    reason: req.nephio.org/v1alpha1.Interface.n${index}`,
      '    status: "True"',
      `    type: ipam.resource.nephio.org/v1alpha1.IPClaim.p${number}-n${index}-ipv4`,
    ].join('\n'),
  );
  return [
    'apiVersion: kpt.dev/v1',
    'kind: Kptfile',
    'metadata: # kpt-merge: /package',
    `  name: package-${number}`,
    '  annotations:',
    '    config.kubernetes.io/local-config: "true"',
    'info:',
    `  description: synthetic package ${number}, revision ${revision}`,
    '  readinessGates:',
    '  - conditionType: nephio.org.Specializer.specialize',
    'pipeline:',
    '  mutators:',
    '  - image: ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.1',
    '    configMap:',
    `      namespace: ns-${number}`,
    '  - image: ghcr.io/kptdev/krm-functions-catalog/set-labels:v0.2.0',
    '    configMap:',
    `      app: package-${number}`,
    'status:',
    '  conditions:',
    ...conditions,
    '',
  ].join('\n');
}

export function manifest(number: number, part: number, revision: number): string {
  return [
    'apiVersion: v1',
    'kind: ConfigMap',
    'metadata:',
    `  name: config-${number}-${part}`,
    `  namespace: ns-${number}`,
    'data:',
    `  revision: "${part < 3 ? revision : 1}"`,
    ...Array.from({ length: 12 }, (_, index) => `  key-${index}: value-${number}-${part}-${index}`),
    '',
  ].join('\n');
}

function files(path: string, number: number, revision: number): string {
  const manifests = Array.from({ length: 10 }, (_, part) =>
    file(`${path}/config-${part}.yaml`, manifest(number, part, revision)),
  );
  return file(`${path}/Kptfile`, kptfile(number, revision)) + manifests.join('');
}

function commit(ref: string, subject: string, trailer: string): string {
  const message = `${subject}\n${trailer === '' ? '' : `\n${trailer}\n`}`;
  return `commit ${ref}\ncommitter bench <bench@example.com> 1767225600 +0000\n${data(message)}`;
}

function file(path: string, text: string): string {
  return `M 100644 inline ${path}\n${data(text)}`;
}

function data(text: string): string {
  return `data ${Buffer.byteLength(text)}\n${text}\n`;
}

/** Runs git and returns what it prints. */
export async function git(args: readonly string[], input?: string): Promise<Buffer> {
  const child = spawn('git', args, { stdio: [input === undefined ? 'ignore' : 'pipe', 'pipe', 'inherit'] });
  const chunks: Buffer[] = [];
  child.stdout?.on('data', (chunk: Buffer) => chunks.push(chunk));
  child.stdin?.end(input);
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`git ${args.join(' ')} ended with ${code}`);
  return Buffer.concat(chunks);
}
