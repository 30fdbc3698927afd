import { parse } from 'yaml';
import { git } from '../support/git/git-cli.ts';
import { APPROVERS, type Host, MAPPED, subjectOf } from './host.ts';

/** What a user approved. */
interface Approval {
  readonly by: 'review' | 'merge' | 'comment' | 'request';
  readonly user: string;
  /** The head that the user saw; all packages in it. */
  readonly commit: string;
  readonly at: number;
  readonly pull: number | undefined;
  withdrawnAt?: number;
}

interface Verdict {
  readonly user: string;
  readonly branch: string;
  readonly commit: string;
  state: 'APPROVE' | 'REQUEST_CHANGES' | 'DISMISSED';
  readonly at: number;
  endedAt?: number;
}

/** What users have decided, apart from all that Sluice notes about it. */
export class Ledger {
  readonly #host: Host;
  readonly approvals: Approval[] = [];
  readonly #verdicts: Verdict[] = [];
  readonly #gates: {
    readonly content: string | undefined;
    readonly revision: string;
    readonly status: string;
    readonly at: number;
  }[] = [];
  readonly #contents = new Map<string, string | undefined>();
  /** By number of the pull request. */
  readonly merges = new Map<number, { readonly at: number; readonly user: string; readonly head: string }>();
  /** Of the last step. */
  now = 0;

  constructor(host: Host) {
    this.#host = host;
  }

  /** The content of a package without conditions and gates; undefined if it is not there. */
  content(commit: string | undefined, folder: string): string | undefined {
    if (commit === undefined) return undefined;
    const id = `${commit}:${folder}`;
    if (this.#contents.has(id)) return this.#contents.get(id);
    const tree = this.#host.tree(commit, folder);
    const made = tree === undefined ? undefined : this.#read(commit, folder);
    this.#contents.set(id, made);
    return made;
  }

  #read(commit: string, folder: string): string {
    const others = git(this.#host.path, ['ls-tree', '-r', commit, `${folder}/`])
      .split('\n')
      .filter((line) => !line.endsWith('/Kptfile'));
    const { status: _, info, ...rest } = parse(this.#host.file(commit, `${folder}/Kptfile`) ?? '{}') ?? {};
    const { readinessGates: __, ...about } = info ?? {};
    return JSON.stringify([others, rest, about]);
  }

  gate(revision: string, content: string | undefined, status: string): void {
    this.#gates.push({ revision, content, status, at: this.now });
  }

  /** Whether the gate was open for a content at some time since a step. */
  wasTrue(revision: string, content: string | undefined, since: number): boolean {
    const all = this.#gates.filter((one) => one.revision === revision && one.content === content);
    const before = all.findLast(({ at }) => at <= since);
    return [...(before === undefined ? [] : [before]), ...all.filter(({ at }) => at > since)].some(
      ({ status }) => status === 'True',
    );
  }

  approve(by: Approval['by'], user: string, commit: string, pull?: number): void {
    this.approvals.push({ by, user, commit, pull, at: this.now });
  }

  review(user: string, branch: string, commit: string, state: Verdict['state'], pull: number): void {
    for (const one of this.#verdicts)
      if (one.user === user && one.branch === branch && one.endedAt === undefined) one.endedAt = this.now;
    this.#verdicts.push({ user, branch, commit, state, at: this.now });
    if (state === 'APPROVE') this.approve('review', user, commit, pull);
    else this.#withdraw(user, pull);
  }

  dismiss(user: string, branch: string, pull: number): void {
    this.review(user, branch, '', 'DISMISSED', pull);
  }

  #withdraw(user: string, pull: number): void {
    for (const one of this.approvals)
      if (one.by === 'review' && one.user === user && one.pull === pull) one.withdrawnAt ??= this.now;
  }

  /** Users whose requested changes were in force at a step, and are still. */
  blockers(branch: string, at: number): readonly string[] {
    return this.#verdicts
      .filter((one) => one.branch === branch && one.state === 'REQUEST_CHANGES' && MAPPED.includes(one.user))
      .filter((one) => one.at <= at && (one.endedAt === undefined || one.endedAt > this.now))
      .map(({ user }) => user);
  }

  /** Subjects of those who may approve, and had approved a content of a package at a step. */
  approversOf(folder: string, content: string | undefined, since: number): ReadonlySet<string> {
    const found = this.approvals.filter(
      (one) =>
        APPROVERS.includes(one.user) &&
        this.content(one.commit, folder) === content &&
        (one.withdrawnAt === undefined || one.withdrawnAt > since),
    );
    return new Set(found.map(({ user }) => subjectOf(user)));
  }
}
