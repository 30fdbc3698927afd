import { execFile } from 'node:child_process';
import { createHash } from 'node:crypto';
import { mkdir, mkdtemp, readFile, rm, writeFile } from 'node:fs/promises';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { promisify } from 'node:util';
import { KubeApi, type KubeObject } from '../../../support/api/kube-api.ts';
import { GIT_ENVIRONMENT } from '../../../support/git/git-cli.ts';

const run = promisify(execFile);
const LIST = '/apis/source.toolkit.fluxcd.io/v1/gitrepositories';
const REQUESTED = 'reconcile.fluxcd.io/requestedAt';
/** Milliseconds between two looks at the objects, and the limit of one command of git. */
const POLL_MS = 100;
const GIT_TIMEOUT_MS = 20_000;

interface GitRepository extends KubeObject {
  readonly metadata: KubeObject['metadata'] & {
    readonly namespace: string;
    readonly generation: number;
    readonly annotations?: Readonly<Record<string, string>>;
  };
  readonly spec: {
    readonly url: string;
    readonly interval: string;
    readonly ref?: { readonly branch?: string };
    readonly suspend?: boolean;
    readonly verify?: { readonly mode?: string; readonly secretRef: { readonly name: string } };
  };
  readonly status?: {
    readonly observedGeneration?: number;
    readonly lastHandledReconcileAt?: string;
    readonly artifact?: { readonly revision: string };
  };
}

/** A refusal with the reason that the condition `Ready` gets. */
class SourceFailure extends Error {
  readonly reason: string;

  constructor(reason: string, message: string) {
    super(message);
    this.reason = reason;
  }
}

/**
 * A stand-in for Flux's source-controller, which cannot be built: it fetches the branch of each GitRepository from the Git host when the object
 * changes or is annotated, and once in each interval, serves the files as an archive, and reports it in `status.artifact`. The real
 * kustomize-controller reads that. Signatures of commits (`spec.verify`) are checked by `gpg`, not by Flux.
 */
export class SourceStandIn implements AsyncDisposable {
  readonly #api: KubeApi;
  readonly #folder: string;
  readonly #server: Server;
  readonly #archives = new Map<string, Buffer>();
  /** Time of the last fetch of each object, by its uid. */
  readonly #fetched = new Map<string, number>();
  readonly #stop = new AbortController();
  #loop: Promise<void> = Promise.resolve();

  private constructor(api: KubeApi, folder: string) {
    this.#api = api;
    this.#folder = folder;
    this.#server = createServer(({ url = '' }, response) => {
      const archive = this.#archives.get(url);
      response.writeHead(archive === undefined ? 404 : 200).end(archive);
    });
  }

  static async start(kubeconfig: string): Promise<SourceStandIn> {
    const folder = await mkdtemp(join(tmpdir(), 'sluice-source-'));
    const standIn = new SourceStandIn(await KubeApi.of(kubeconfig), folder);
    await new Promise<void>((resolve) => standIn.#server.listen(0, '127.0.0.1', resolve));
    standIn.#loop = standIn.#reconcile();
    return standIn;
  }

  async #reconcile(): Promise<void> {
    const { signal } = this.#stop;
    while (!signal.aborted) {
      const { body } = await this.#api.list(LIST).catch(() => ({ body: undefined }));
      for (const object of (body?.items ?? []) as readonly GitRepository[])
        if (this.#isDue(object) && !signal.aborted) await this.#update(object);
      await delay(POLL_MS, undefined, { signal }).catch(() => undefined);
    }
  }

  /** True if the interval is over, or an object has changed, or is annotated with a request, since its status was written. */
  #isDue({ metadata, spec, status = {} }: GitRepository): boolean {
    if (spec.suspend === true) return false;
    if (Date.now() - (this.#fetched.get(metadata.uid) ?? 0) > millisecondsOf(spec.interval)) return true;
    const requested = metadata.annotations?.[REQUESTED];
    return status.observedGeneration !== metadata.generation || requested !== status.lastHandledReconcileAt;
  }

  async #update(object: GitRepository): Promise<void> {
    this.#fetched.set(object.metadata.uid, Date.now());
    const { name, namespace, generation, annotations = {} } = object.metadata;
    const handled = annotations[REQUESTED];
    const status = await this.#produce(object).catch((error: unknown) => {
      if (this.#stop.signal.aborted) return undefined;
      const reason = error instanceof SourceFailure ? error.reason : 'GitOperationFailed';
      const message = error instanceof Error ? error.message : String(error);
      return { conditions: [condition('Ready', false, reason, message, generation)] };
    });
    if (status === undefined) return;
    const path = `/apis/source.toolkit.fluxcd.io/v1/namespaces/${namespace}/gitrepositories/${name}/status`;
    const body = {
      status: {
        ...status,
        observedGeneration: generation,
        ...(handled === undefined ? {} : { lastHandledReconcileAt: handled }),
      },
    };
    const answer = await this.#api.patch(path, body);
    // The object was deleted meanwhile.
    if (answer.status >= 300 && answer.status !== 404) throw new Error(`the status is refused: ${answer.text}`);
  }

  async #produce(object: GitRepository): Promise<object> {
    const { name, namespace, uid, generation } = object.metadata;
    const { url, ref, verify } = object.spec;
    const branch = ref?.branch ?? 'main';
    const mirror = join(this.#folder, `${uid}.git`);
    await git(['init', '--quiet', '--bare', mirror]);
    await git([
      '--git-dir',
      mirror,
      'fetch',
      '--quiet',
      '--depth=1',
      url,
      `+refs/heads/${branch}:refs/heads/${branch}`,
    ]);
    const { stdout: oid } = await git(['--git-dir', mirror, 'rev-parse', `refs/heads/${branch}`]);
    const commit = oid.trim();
    if (verify !== undefined) await this.#verify(object, mirror, commit);
    const archive = join(this.#folder, `${uid}.tar.gz`);
    await git(['--git-dir', mirror, 'archive', '--format=tar.gz', '-o', archive, commit]);
    const data = await readFile(archive);
    const path = `gitrepository/${namespace}/${name}/${commit}.tar.gz`;
    this.#archives.set(`/${path}`, data);
    const revision = `${branch}@sha1:${commit}`;
    const { port } = this.#server.address() as AddressInfo;
    const message = `stored artifact for revision '${revision}'`;
    const verified = verify === undefined ? [] : [condition('SourceVerified', true, 'Succeeded', commit, generation)];
    return {
      artifact: {
        digest: `sha256:${createHash('sha256').update(data).digest('hex')}`,
        lastUpdateTime: `${new Date().toISOString().slice(0, 19)}Z`,
        path,
        revision,
        size: data.length,
        url: `http://127.0.0.1:${port}/${path}`,
      },
      conditions: [
        condition('Ready', true, 'Succeeded', message, generation),
        condition('ArtifactInStorage', true, 'Succeeded', message, generation),
        ...verified,
      ],
    };
  }

  /** Checks the signature of a commit against the keys in the Secret that the object names. */
  async #verify(object: GitRepository, mirror: string, commit: string): Promise<void> {
    const { namespace, uid } = object.metadata;
    const name = object.spec.verify?.secretRef.name;
    const { status, body } = await this.#api.get<{ readonly data?: Readonly<Record<string, string>> }>(
      `/api/v1/namespaces/${namespace}/secrets/${name}`,
    );
    if (status !== 200) throw new SourceFailure('VerificationError', `public keys secret error: ${name} is missing`);
    const home = join(this.#folder, `${uid}.gnupg`);
    await rm(home, { recursive: true, force: true });
    await mkdir(home, { mode: 0o700 });
    // Public keys need no agent, which would go on running.
    await writeFile(join(home, 'gpg.conf'), 'no-autostart\n');
    for (const [key, value] of Object.entries(body.data ?? {})) {
      const file = join(home, key);
      await writeFile(file, Buffer.from(value, 'base64'));
      await run('gpg', ['--homedir', home, '--batch', '--quiet', '--import', file]);
    }
    try {
      await git(['--git-dir', mirror, 'verify-commit', commit], { GNUPGHOME: home });
    } catch (error) {
      const { stderr = '' } = error as { readonly stderr?: string };
      const words = `signature verification of commit '${commit}' failed: ${stderr.trim()}`;
      throw new SourceFailure('InvalidCommitSignature', words);
    }
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    await this.#loop;
    this.#api.close();
    const closed = new Promise((resolve) => this.#server.close(resolve));
    this.#server.closeAllConnections();
    await closed;
    await rm(this.#folder, { recursive: true, force: true });
  }
}

/** A duration such as `1h30m` or `30s`. */
function millisecondsOf(duration: string): number {
  const units: Readonly<Record<string, number>> = { h: 3_600_000, m: 60_000, s: 1000 };
  let total = 0;
  for (const [, count, unit = ''] of duration.matchAll(/(\d+)([hms])/g)) total += Number(count) * (units[unit] ?? 0);
  return total;
}

function condition(type: string, holds: boolean, reason: string, message: string, generation: number): object {
  const lastTransitionTime = `${new Date().toISOString().slice(0, 19)}Z`;
  return {
    type,
    status: holds ? 'True' : 'False',
    reason,
    message,
    lastTransitionTime,
    observedGeneration: generation,
  };
}

function git(words: readonly string[], environment: Readonly<Record<string, string>> = {}) {
  return run('git', words, { env: { ...GIT_ENVIRONMENT, ...environment }, timeout: GIT_TIMEOUT_MS });
}
