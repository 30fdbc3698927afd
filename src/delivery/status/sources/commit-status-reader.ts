import { isSluiceError, SluiceError } from '../../../foundation/sluice-error.ts';
import type { Oid } from '../../../git/git-repository.ts';
import type { DeliveryTarget } from '../../../resource/kinds/sluice/delivery-target.ts';
import type { DeploymentStatus, EngineReports, ReportRequest } from '../deployment-status.ts';
import { sourcePath } from '../engine-values.ts';
import { type CommitStatuses, commitStatusReport, interpretCommitStatuses } from '../interpret-commit-statuses.ts';

/** The contexts of Flux's notifications. */
const DEFAULT_CONTEXT = 'kustomization/*';
/** Commits whose statuses are read; a status of an older commit does not count. */
const MAX_COMMITS = 10;
/** Milliseconds between two reads: while a deployment runs, and afterwards. */
const POLL_MS = 15_000;
const SETTLED_POLL_MS = 120_000;
/** Statuses on one page. */
const PAGE_SIZE = 100;

/** Requests a document of a Git host. Undefined for 404. Errors as of `DeploymentStatus.reports`. */
export type ReadHostDocument = (url: string, signal: AbortSignal) => Promise<unknown>;

/** The address of the API of a Git host, and of a repository in it. */
interface HostApi {
  readonly base: string;
  readonly repository: string;
}

/**
 * The addresses at which a Git host may serve the API: that of GitHub, or first that of Gitea and Forgejo, then that of GitHub
 * Enterprise. Throws InvalidInput for an address without one.
 */
export function hostApis(repo: string): HostApi[] {
  const url = /^https?:\/\//i.test(repo) ? URL.parse(repo) : null;
  const parts = (url?.pathname ?? '')
    .replace(/\/+$/, '')
    .replace(/\.git$/, '')
    .split('/')
    .filter((part) => part !== '');
  const [name, owner] = [parts.pop(), parts.pop()];
  if (url === null || name === undefined || owner === undefined)
    throw new SluiceError(
      'InvalidInput',
      `cannot read commit statuses of ${repo}: spec.engine.type CommitStatus needs spec.git.repo of the form https://<host>/<owner>/<repository>`,
    );
  const repository = `repos/${owner}/${name}`;
  if (url.hostname === 'github.com') return [{ base: 'https://api.github.com', repository }];
  const root = [url.origin, ...parts].join('/');
  return ['api/v1', 'api/v3'].map((version) => ({ base: `${root}/${version}`, repository }));
}

/** Reads commit statuses with the context of an engine; needs no access to a cluster. */
export class CommitStatusReader implements DeploymentStatus {
  readonly #apis: readonly HostApi[];
  readonly #context: string;
  readonly #directory: string;
  readonly #read: ReadHostDocument;
  readonly #close: () => Promise<void>;
  /** The one that responded. */
  #api: HostApi | undefined;

  constructor({ spec }: Pick<DeliveryTarget, 'spec'>, read: ReadHostDocument, close: () => Promise<void>) {
    this.#apis = hostApis(spec.git.repo);
    this.#context = spec.engine?.context ?? DEFAULT_CONTEXT;
    this.#directory = sourcePath(spec.git.directory) ?? '';
    this.#read = read;
    this.#close = close;
  }

  async reports({ commits, signal }: ReportRequest): Promise<EngineReports> {
    const found: CommitStatuses[] = [];
    for (const commit of (await commits()).slice(0, MAX_COMMITS)) {
      const statuses = interpretCommitStatuses(await this.#statusesOf(commit, signal), commit, this.#context);
      if (statuses === undefined) continue;
      found.push(statuses);
      // Older commits say nothing more: this one is applied.
      if (statuses.verdict === 'success') break;
    }
    const report = commitStatusReport(`commit status ${this.#context}`, this.#directory, found);
    return { reports: [report], retryAfterMs: found[0]?.verdict === 'success' ? SETTLED_POLL_MS : POLL_MS };
  }

  close(): Promise<void> {
    return this.#close();
  }

  async #statusesOf(commit: Oid, signal: AbortSignal): Promise<unknown> {
    const candidates = this.#api === undefined ? this.#apis : [this.#api];
    for (const api of candidates) {
      const document = await this.#document(api, commit, signal);
      if (document === undefined) continue;
      this.#api = api;
      return document;
    }
    const [first] = candidates;
    throw new SluiceError(
      'NotFound',
      `cannot read commit statuses: ${first?.base}/${first?.repository} has no commit ${commit.slice(0, 12)}, or its credentials may not read it; check spec.git.secretRef`,
    );
  }

  async #document({ base, repository }: HostApi, commit: Oid, signal: AbortSignal): Promise<unknown> {
    // `per_page` is GitHub's name, `limit` Gitea's.
    const url = `${base}/${repository}/commits/${commit}/status?per_page=${PAGE_SIZE}&limit=${PAGE_SIZE}`;
    try {
      return await this.#read(url, signal);
    } catch (error) {
      // A host of another kind may respond with anything at an address that it does not know.
      if (this.#api === undefined && this.#apis.length > 1 && isSluiceError(error, 'InvalidInput')) return undefined;
      throw error;
    }
  }
}
