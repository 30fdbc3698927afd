import { inputsSeen } from './inputs-seen.ts';
import type { ModelApproval, ModelRecord, ModelRevision, ModelVerdict } from './model-state.ts';
import { type CommitData, type PackageData, treeOf } from './package-data.ts';

/*
 * What the server wrote, and what of that counts, in words:
 *
 * - A record counts while the last one that the server wrote for the revision is where it was written. Anything else there, or nothing,
 *   is as good as none: what the server knew is not known any more, and the revision was changed by an unknown actor.
 * - After the server has lost its memory, the record that is there then is the last one that it knows, if its own key signed it; but
 *   that it was the last one is not known, so that no verdict and no approval in it counts. The same holds for records that turn up
 *   later on top of that, and not for what the server writes itself.
 * - Commits that the record does not know of were pushed: conditions that one changed were given by it, for what it held.
 * - A publication counts if the server made it, as this tag on this commit, with a key that it still has, or had when the commit was
 *   on the main branch and the key was given up; after a loss of memory also only if the commit is on the main branch.
 */

interface Written {
  readonly workspace: string;
  readonly kept: ModelRecord;
  readonly key: string;
  readonly order: number;
}

/** The last statement on a revision that the server knows. */
interface Latest {
  /** Undefined for a deletion. */
  readonly what: string | undefined;
  readonly order: number;
  readonly isProven: boolean;
}

interface Publication {
  readonly commit: string;
  readonly key: string;
  readonly given: ReadonlyMap<string, ModelVerdict>;
  /** Location at first sight; undefined if it is still to be determined. */
  onMain: boolean | undefined;
  /** The key was given up, and the commit was on the main branch. */
  wasThere: boolean;
}

export function emptyKept(
  commit: string,
  given: ReadonlyMap<string, ModelVerdict> = new Map(),
  base?: ModelRecord['base'],
): ModelRecord {
  const sets = { contributors: new Set<string>(), approvals: new Map<string, ModelApproval>(), required: [] };
  return { commit, given: new Map(given), ...sets, lost: false, rejected: false, proposer: undefined, base };
}

function copy(kept: ModelRecord): ModelRecord {
  const { given, contributors, approvals, required } = kept;
  return {
    ...kept,
    ...{ given: new Map(given), contributors: new Set(contributors) },
    ...{ approvals: new Map(approvals), required: [...required] },
  };
}

export class ModelRecords {
  /** The content of each record ref, by workspace. */
  readonly held = new Map<string, string>();
  readonly #written = new Map<string, Written>();
  readonly #latest = new Map<string, Latest>();
  /** By version and commit. */
  readonly #publications = new Map<string, Publication>();
  readonly #commits: ReadonlyMap<string, CommitData>;
  #order = 0;
  /** The last commit of the main branch that the server saw. */
  #main: string | undefined;
  key: string;

  constructor(commits: ReadonlyMap<string, CommitData>, key: string) {
    this.#commits = commits;
    this.key = key;
  }

  wrote(workspace: string, oid: string, kept: ModelRecord): void {
    this.#order += 1;
    this.#written.set(oid, { workspace, kept: copy(kept), key: this.key, order: this.#order });
    this.#latest.set(workspace, { what: oid, order: this.#order, isProven: true });
    this.held.set(workspace, oid);
  }

  /** `counts` is false for a merge that passed by gates or approvals. */
  published(
    workspace: string,
    { version, commit, counts }: { version: string; commit: string; counts: boolean },
    given: ReadonlyMap<string, ModelVerdict>,
  ): void {
    this.#order += 1;
    this.#latest.set(workspace, { what: 'publication', order: this.#order, isProven: true });
    this.held.delete(workspace);
    if (!counts) {
      this.#publications.delete(`${version} ${commit}`);
      return;
    }
    const publication = { commit, key: this.key, given: new Map(given), onMain: true, wasThere: false };
    this.#publications.set(`${version} ${commit}`, publication);
  }

  deleted(workspace: string): void {
    this.#order += 1;
    this.#latest.set(workspace, { what: undefined, order: this.#order, isProven: true });
    this.held.delete(workspace);
  }

  /** Reads the current refs, as the server does. */
  look(tags: Iterable<ModelRevision>, main: string | undefined): void {
    for (const { version, commit } of tags) {
      const found = this.#publications.get(`${version} ${commit}`);
      if (found === undefined || found.onMain !== undefined) continue;
      found.onMain = this.isOnLine(commit, main) || this.isOnLine(commit, this.#main);
    }
    this.#main = main ?? this.#main;
    for (const [workspace, oid] of this.held) {
      const written = this.#written.get(oid);
      if (written === undefined || written.workspace !== workspace || written.key !== this.key) continue;
      const latest = this.#latest.get(workspace);
      if (latest !== undefined && latest.order >= written.order) continue;
      this.#latest.set(workspace, { what: oid, order: written.order, isProven: latest?.isProven ?? false });
    }
  }

  /** The server has lost its memory. */
  lose(): void {
    this.#latest.clear();
    this.#main = undefined;
    for (const publication of this.#publications.values()) {
      publication.onMain = undefined;
      publication.wasThere = false;
    }
  }

  rotate(key: string): void {
    for (const publication of this.#publications.values()) {
      if (publication.key === this.key) publication.wasThere = this.isOnLine(publication.commit, this.#main);
    }
    this.key = key;
  }

  /** The verdicts of a publication that counts. */
  inBand(version: string, commit: string): ReadonlyMap<string, ModelVerdict> | undefined {
    const found = this.#publications.get(`${version} ${commit}`);
    if (found === undefined || found.onMain === false) return undefined;
    return found.key === this.key || found.wasThere ? found.given : undefined;
  }

  commitAt(oid: string): CommitData | undefined {
    return this.#commits.get(oid);
  }

  /** The tree of the package at a commit. */
  treeAt(oid: string): string | undefined {
    const data = this.#commits.get(oid)?.data;
    return data && treeOf(data);
  }

  /** The last commit that is in the histories of both. Commits are numbered in the order in which they were made. */
  lastCommon(one: string, other: string): string | undefined {
    const others = this.#history(other);
    return [...this.#history(one)]
      .filter((oid) => others.has(oid))
      .sort((a, b) => Number(b.slice(1)) - Number(a.slice(1)))[0];
  }

  #history(tip: string): Set<string> {
    const all = new Set([tip]);
    for (const oid of all) for (const parent of this.#commits.get(oid)?.parents ?? []) all.add(parent);
    return all;
  }

  /** `tags` are the published revisions. */
  current(workspace: string, entry: ModelRevision, tags: readonly ModelRevision[]): ModelRecord {
    if (entry.place === 'tag') return emptyKept(entry.commit, this.inBand(entry.version, entry.commit));
    if (entry.place === 'main') return emptyKept(entry.commit);
    const oid = this.held.get(workspace);
    const latest = this.#latest.get(workspace);
    const counts = oid !== undefined && latest?.what === oid;
    const written = counts ? this.#written.get(oid) : undefined;
    if (written !== undefined) return this.#after(written.kept, latest?.isProven === true, entry);
    const distrusted = oid !== undefined || latest?.what !== undefined;
    const { start, isCopy, known, pushed } = this.#withoutRecord(entry.commit, tags);
    if (distrusted || !isCopy) start.contributors.add('push');
    this.#push(start, known, pushed);
    return { ...start, commit: entry.commit, lost: distrusted && entry.place === 'proposed' };
  }

  /** The record, and later pushes. */
  #after(written: ModelRecord, isProven: boolean, entry: ModelRevision): ModelRecord {
    const kept = copy(written);
    if (!isProven) {
      kept.given.clear();
      kept.approvals.clear();
    }
    if (kept.commit === entry.commit) return kept;
    const pushed: PackageCommit[] = [];
    let known: PackageData | undefined;
    for (const commit of this.#line(entry.commit)) {
      if (commit.oid === kept.commit) {
        known = commit.data;
        break;
      }
      pushed.unshift(commit);
    }
    // The history was rewritten: all commits count as one push.
    this.#push(kept, known, known === undefined ? pushed.slice(-1) : pushed);
    return { ...kept, commit: entry.commit, proposer: undefined };
  }

  #withoutRecord(tip: string, tags: readonly ModelRevision[]) {
    const pushed: PackageCommit[] = [];
    for (const commit of this.#line(tip)) {
      const source = tags.find(({ version, commit: tag, number }) => {
        const data = this.#commits.get(tag)?.data;
        return number > 0 && this.inBand(version, tag) && data !== undefined && treeOf(data) === treeOf(commit.data);
      });
      if (source !== undefined || commit.isSluices) {
        const given = source === undefined ? undefined : this.inBand(source.version, source.commit);
        return { start: emptyKept(tip, given), isCopy: source !== undefined, known: commit.data, pushed };
      }
      pushed.unshift(commit);
    }
    return { start: emptyKept(tip), isCopy: false, known: NOTHING, pushed };
  }

  #push(kept: ModelRecord, before: PackageData | undefined, pushed: readonly PackageCommit[]): void {
    let known = before;
    for (const { data, at } of pushed) {
      kept.contributors.add('push');
      for (const type of kept.given.keys()) if (!data.conditions.has(type)) kept.given.delete(type);
      for (const [type, { status, message: text = '' }] of data.conditions) {
        const old = known?.conditions.get(type);
        if (old !== undefined && old.status === status && (old.message ?? '') === text) continue;
        const given = kept.given.get(type);
        if (given?.status === status && given.text === text) continue;
        kept.given.set(type, { status, text, by: 'push', groups: [], pushed: true, at, saw: inputsSeen(type, data) });
      }
      known = data;
    }
  }

  /** First parents with the package, newest first. */
  *#line(tip: string): Generator<PackageCommit> {
    for (let oid: string | undefined = tip; oid !== undefined; ) {
      const commit: CommitData | undefined = this.#commits.get(oid);
      if (commit?.data === undefined) return;
      yield { oid, data: commit.data, isSluices: commit.action !== undefined, at: Date.parse(commit.time ?? '') };
      oid = commit.parents[0];
    }
  }

  isOnLine(commit: string, head: string | undefined): boolean {
    for (let at = head; at !== undefined; at = this.#commits.get(at)?.parents[0]) if (at === commit) return true;
    return false;
  }
}

interface PackageCommit {
  readonly oid: string;
  readonly data: PackageData;
  readonly isSluices: boolean;
  readonly at: number;
}

const NOTHING: PackageData = { content: 0, object: undefined, gates: [], conditions: new Map(), problem: undefined };
