import type { Oid, RefChange } from '../../../git/git-repository.ts';
import { parseRef } from '../../model/identity/layout.ts';
import type { CommitFacts } from '../../model/record/commit-message.ts';
import { type Distrust, revoked } from '../../trust/distrust.ts';
import type { Signer } from '../../trust/repository-trust.ts';
import { payloadOf } from '../../trust/statement/statement.ts';
import { fakeSigner } from '../../trust/testing/fake-signatures.ts';
import type { Knowledge } from '../classify.ts';
import { evaluatePublication, type PublicationFacts, type PublicationFlaw } from '../publication.ts';
import { type CommitData, commitFactsOf, PATH, REPOSITORY, treeOf } from './package-data.ts';
import { LAYOUT, MAIN } from './places.ts';
import { type Records, scope } from './records.ts';

/** The refs and commits of the world, and what the server finds out about publications. */
export class Refs {
  readonly refs = new Map<string, Oid>();
  readonly commits = new Map<Oid, CommitData>();
  readonly #records: Records;
  /** Steps of the server, per ref, for `decided`. */
  readonly #journal = new Map<string, { before: Oid | undefined; after: Oid | undefined }[]>();
  readonly #facts = new Map<Oid, CommitFacts>();
  readonly #signers = new Map<Oid, Signer>();
  /** True for published commits that were on the main branch when they were first seen. */
  #onMain = new Map<Oid, boolean>();

  constructor(records: Records) {
    this.#records = records;
  }

  /** Object id of the commit made last. */
  get last(): Oid {
    return `c${this.commits.size}`;
  }

  commit(data: CommitData): Oid {
    this.commits.set(`c${this.commits.size + 1}`, data);
    return this.last;
  }

  /** An annotated tag carries the statement of a publication: it reads as if the commit did. */
  annotate(oid: Oid, data: Pick<CommitData, 'workspace' | 'revision' | 'statement'>): void {
    const commit = this.commits.get(oid);
    if (commit === undefined) throw new Error(`there is no ${oid}`);
    this.commits.set(oid, { ...commit, ...data });
    this.#facts.delete(oid);
    this.#signers.delete(oid);
    this.#onMain.delete(oid);
  }

  set(ref: string, oid: Oid | undefined, byServer: boolean): void {
    const before = this.refs.get(ref);
    if (before === oid) return;
    if (oid === undefined) this.refs.delete(ref);
    else this.refs.set(ref, oid);
    if (!byServer) return;
    const steps = this.#journal.get(ref);
    if (steps === undefined) this.#journal.set(ref, [{ before, after: oid }]);
    else steps.push({ before, after: oid });
  }

  mainParents(): Oid[] {
    const head = this.refs.get(MAIN);
    return head === undefined ? [] : [head];
  }

  factsAt(oid: Oid): CommitFacts {
    const known = this.#facts.get(oid);
    if (known !== undefined) return known;
    const facts = commitFactsOf(this.commits.get(oid) ?? { data: undefined, parents: [], action: undefined });
    this.#facts.set(oid, facts);
    return facts;
  }

  /** Returns the workspace of a tag according to its commit. */
  workspaceOf(oid: Oid, version: string): string {
    const { statement, annotations } = this.factsAt(oid);
    const signed = statement?.statement;
    if (signed?.package === PATH && `v${signed.revision}` === version) return signed.workspace;
    const own = annotations.find(({ package: path, revision }) => path === PATH && `v${revision}` === version);
    return own?.workspaceName ?? version;
  }

  /** The server notices tags that it had not seen. */
  look(): void {
    for (const [ref, oid] of this.refs) {
      if (parseRef(LAYOUT, ref).kind !== 'published' || this.#onMain.has(oid)) continue;
      const facts = this.publication(ref, oid);
      if (facts === undefined || !evaluatePublication(facts).inBand) continue;
      const heads = [this.refs.get(MAIN), this.#records.trust.mainHead];
      this.#onMain.set(
        oid,
        heads.some((head) => head !== undefined && this.isOnLine(oid, head)),
      );
    }
  }

  /** Forgets when tags were first seen. */
  forget(): void {
    this.#onMain = new Map();
  }

  publication(ref: string, oid: Oid): PublicationFacts | undefined {
    const commit = this.commits.get(oid);
    const meaning = parseRef(LAYOUT, ref);
    if (commit === undefined || meaning.kind !== 'published') return undefined;
    return {
      ...{
        oid,
        parents: commit.parents,
        branch: LAYOUT.branch,
        subject: '',
        commit: this.factsAt(oid),
        repository: REPOSITORY,
        path: PATH,
      },
      ...{ version: meaning.version, tree: commit.data && treeOf(commit.data) },
    };
  }

  /** Returns why the statement of a publication does not count. */
  distrust(oid: Oid): Distrust | { reason: PublicationFlaw; message: string } | undefined {
    const { trust } = this.#records;
    const signer = this.#signerOf(oid);
    const flaw = trust.distrustOfSigner(signer);
    if (flaw !== undefined) return flaw;
    const revocation = trust.revocationOf(signer);
    if (revocation !== undefined) {
      const { head, key } = revocation;
      if (head === undefined || !this.isOnLine(oid, head)) return revoked(key);
    }
    if (this.#onMain.get(oid) !== false) return undefined;
    return { reason: 'NotOnMain', message: 'it was not on the main branch' };
  }

  isInBand(ref: string, oid: Oid): boolean {
    const facts = this.publication(ref, oid);
    return facts !== undefined && evaluatePublication(facts).inBand && this.distrust(oid) === undefined;
  }

  knowledge(): Knowledge {
    return {
      publication: (ref, oid) => this.publication(ref, oid),
      distrust: (_ref, oid) => this.distrust(oid),
      isAncestor: (older, newer) => this.#isAncestor(older, newer),
      trustedRecord: (ref, oid) => {
        const meaning = parseRef(LAYOUT, ref);
        if (meaning.kind !== 'record') return false;
        const fact = this.#records.commits.get(oid)?.fact;
        return this.#records.trust.distrustOfRecord(fact, scope(meaning.workspace)) === undefined;
      },
      decided: (change) => this.#decided(change),
    };
  }

  #signerOf(oid: Oid): Signer {
    if (this.#signers.has(oid)) return this.#signers.get(oid);
    const signed = this.factsAt(oid).statement;
    const signer = signed === undefined ? null : (fakeSigner(payloadOf(signed.statement), signed.signature) ?? null);
    this.#signers.set(oid, signer);
    return signer;
  }

  /** Follows the steps of the journal from one value to the other. */
  #decided({ name, before, after }: RefChange): boolean {
    const steps = this.#journal.get(name) ?? [];
    for (const [start, first] of steps.entries()) {
      if (first.before !== before) continue;
      let value = first.before;
      for (const step of steps.slice(start)) {
        if (step.before !== value) break;
        value = step.after;
        if (value === after) return true;
      }
    }
    return false;
  }

  isOnLine(oid: Oid, head: Oid): boolean {
    for (let at: Oid | undefined = head; at !== undefined; at = this.commits.get(at)?.parents[0]) {
      if (at === oid) return true;
    }
    return false;
  }

  /** The newest common ancestor: the ids of later commits have higher numbers. */
  mergeBase(one: Oid, other: Oid): Oid | undefined {
    const waiting = new Map([
      [one, 1],
      [other, one === other ? 3 : 2],
    ]);
    for (let number = this.commits.size; number > 0; number--) {
      const oid = `c${number}`;
      const sides = waiting.get(oid) ?? 0;
      if (sides === 3) return oid;
      if (sides > 0)
        for (const parent of this.commits.get(oid)?.parents ?? [])
          waiting.set(parent, (waiting.get(parent) ?? 0) | sides);
    }
    return undefined;
  }

  #isAncestor(older: Oid, newer: Oid): boolean {
    if (older === newer) return true;
    const record = this.#records.commits.get(newer);
    if (record !== undefined) return record.parent !== undefined && this.#isAncestor(older, record.parent);
    return (this.commits.get(newer)?.parents ?? []).some((parent) => this.#isAncestor(older, parent));
  }
}
