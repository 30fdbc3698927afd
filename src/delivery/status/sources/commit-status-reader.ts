import { isSluiceError, SluiceError } from '../../../foundation/sluice-error.ts';
import type { Oid } from '../../../git/git-repository.ts';
import type { DeliveryTarget } from '../../../resource/kinds/sluice/delivery/delivery-target.ts';
import type { DeploymentStatus, EngineReports, ReportRequest } from '../deployment-status.ts';
import { engineText, sourcePath } from '../engine-values.ts';
import {
  type CommitStatuses,
  commitStatusReport,
  type InterpretedStatuses,
  interpretCommitStatuses,
  type StatusContexts,
  statusesIn,
} from '../interpret-commit-statuses.ts';

/** The contexts of Flux's notifications. */
const DEFAULT_CONTEXT = 'kustomization/*';
/** Commits whose statuses are read; a status of an older commit does not count, apart from those of packages that were read earlier. */
const MAX_COMMITS = 10;
/** The same at the first read where packages have contexts of their own: the commit that delivered a package may be older. */
const MAX_PACKAGE_COMMITS = 50;
/** Milliseconds between two reads: while a deployment runs, and afterwards. */
const POLL_MS = 15_000;
const SETTLED_POLL_MS = 120_000;
/** Statuses on one page; Gitea sends at most 50. */
const PAGE_SIZE = 100;
const MIN_FULL_PAGE = 50;
/** Pages of one commit; further statuses do not count. */
const MAX_PAGES = 20;

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
  readonly #contexts: StatusContexts;
  readonly #directory: string;
  readonly #read: ReadHostDocument;
  readonly #close: () => Promise<void>;
  /** The one that responded. */
  #api: HostApi | undefined;
  /** The commits whose statuses are the present reports of packages; undefined before the first read. */
  #packageCommits: ReadonlySet<Oid> | undefined;

  constructor({ spec }: Pick<DeliveryTarget, 'spec'>, read: ReadHostDocument, close: () => Promise<void>) {
    this.#apis = hostApis(spec.git.repo);
    this.#contexts = { target: spec.engine?.context ?? DEFAULT_CONTEXT, package: spec.engine?.packageContext };
    this.#directory = sourcePath(spec.git.directory) ?? '';
    this.#read = read;
    this.#close = close;
  }

  async reports({ commits, signal }: ReportRequest): Promise<EngineReports> {
    const newest: CommitStatuses[] = [];
    const byPackage = new Map<string, CommitStatuses[]>();
    for (const commit of this.#due(await commits())) {
      const { target, packages } = await this.#statusesOf(commit, signal);
      if (target !== undefined && newest.at(-1)?.verdict !== 'success') newest.push(target);
      for (const [name, statuses] of packages) byPackage.set(name, [...(byPackage.get(name) ?? []), statuses]);
      // Older commits say nothing more: this one is applied. Those of packages each have a commit of their own.
      if (newest.at(-1)?.verdict === 'success' && this.#contexts.package === undefined) break;
    }
    this.#packageCommits = new Set(
      [...byPackage.values()].flatMap((list) => newestOf(list).map(({ commit }) => commit)),
    );
    const reports = [commitStatusReport(`commit status ${this.#contexts.target}`, this.#directory, newest)];
    for (const [name, list] of byPackage) {
      const path = sourcePath(`${this.#directory}/${name}`);
      const context = (this.#contexts.package ?? '').replace('{package}', () => name);
      if (path !== undefined) reports.push(commitStatusReport(`commit status ${engineText(context)}`, path, list));
    }
    const verdicts = [newest, ...byPackage.values()].flatMap(([first]) => first?.verdict ?? []);
    const isSettled = verdicts.length > 0 && verdicts.every((verdict) => verdict === 'success');
    // Most such statuses are those of Flux.
    const filtered = reports.map((report) => ({ ...report, artifact: {} }));
    return { reports: filtered, retryAfterMs: isSettled ? SETTLED_POLL_MS : POLL_MS };
  }

  close(): Promise<void> {
    return this.#close();
  }

  /** The commits to read, the newest first: the newest ones, and older ones with what is known of packages. */
  #due(commits: readonly Oid[]): readonly Oid[] {
    if (this.#contexts.package === undefined) return commits.slice(0, MAX_COMMITS);
    const known = this.#packageCommits;
    const searched = commits.slice(0, MAX_PACKAGE_COMMITS);
    return known === undefined ? searched : searched.filter((commit, at) => at < MAX_COMMITS || known.has(commit));
  }

  async #statusesOf(commit: Oid, signal: AbortSignal): Promise<InterpretedStatuses> {
    const statuses: unknown[] = [];
    for (let page = 1; page <= MAX_PAGES; page += 1) {
      const found = statusesIn(await this.#page(commit, page, signal));
      statuses.push(...found);
      if (found.length < MIN_FULL_PAGE) break;
    }
    return interpretCommitStatuses(statuses, commit, this.#contexts);
  }

  async #page(commit: Oid, page: number, signal: AbortSignal): Promise<unknown> {
    const candidates = this.#api === undefined ? this.#apis : [this.#api];
    for (const api of candidates) {
      const document = await this.#document(api, commit, page, signal);
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

  async #document({ base, repository }: HostApi, commit: Oid, page: number, signal: AbortSignal): Promise<unknown> {
    // `per_page` is GitHub's name, `limit` Gitea's.
    const url = `${base}/${repository}/commits/${commit}/status?per_page=${PAGE_SIZE}&limit=${PAGE_SIZE}&page=${page}`;
    try {
      return await this.#read(url, signal);
    } catch (error) {
      // A host of another kind may respond with anything at an address that it does not know.
      if (this.#api === undefined && this.#apis.length > 1 && isSluiceError(error, 'InvalidInput')) return undefined;
      throw error;
    }
  }
}

/** The statuses that a report is made of: the newest, and the newest success. */
function newestOf(list: readonly CommitStatuses[]): CommitStatuses[] {
  const success = list.find(({ verdict }) => verdict === 'success');
  return [...list.slice(0, 1), ...(success === undefined ? [] : [success])];
}
