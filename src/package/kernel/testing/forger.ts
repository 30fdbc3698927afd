import type { Oid } from '../../../git/git-repository.ts';
import type { FoldedRecord, PublicationStatement } from '../../model/record/commit-message.ts';
import type { RecordStatement, RevisionRecord } from '../../model/record/record.ts';
import type { StatementFact } from '../../trust/repository-trust.ts';
import { payloadOf, STATEMENT_VERSION } from '../../trust/statement/statement.ts';
import { fakeSignature } from '../../trust/testing/fake-signatures.ts';
import type { Draws } from './draws.ts';
import type { ModelRevision } from './model-state.ts';
import { type CommitData, inputsOf, type PackageData, REPOSITORY, TYPES, treeOf } from './package-data.ts';
import { LAYOUT, recordRefOf } from './places.ts';
import { scope, signedBy } from './records.ts';
import type { World } from './world.ts';

const FOREIGN = 'foreign';

/**
 * The commits that an attacker can write: statements signed with keys of its own or with stolen ones that were revoked, and copies of
 * all statements of the server, in any place. It cannot sign with the key that the server uses.
 */
export class Forger {
  readonly #world: World;

  constructor(world: World) {
    this.#world = world;
  }

  /** A commit that claims to publish a package as `version`. */
  publication(version: string, data: PackageData, draws: Draws): { commit: Oid; attack: string } {
    const { store, at, records } = this.#world;
    const head = store.mainParents();
    const parents = [...head, ...(draws.below(2) === 0 ? head : [])];
    const revision = Number(version.slice(1)) || 1;
    const record: FoldedRecord = { verdicts: [], steps: [], content: inputsOf(data).content, gates: [] };
    const own: PublicationStatement = {
      ...{ statement: STATEMENT_VERSION, kind: 'publication', repository: REPOSITORY, ...scope(version) },
      ...{ sequence: 1_000, previous: null, revision, tree: treeOf(data), draft: 'c1', record },
      ...{ branch: LAYOUT.branch, onto: head[0] ?? '' },
    };
    const plain = { data, parents, action: 'approve', time: at, workspace: version, revision };
    const make = (attack: string, more: Partial<CommitData>) => ({
      commit: store.commit({ ...plain, ...more }),
      attack,
    });
    const signed = (statement: PublicationStatement, key: string) => ({
      statement: { statement, signature: fakeSignature(key, payloadOf(statement)) },
    });
    const genuine = this.#genuine(draws);
    const stolen = draws.of(records.revokedKeys);
    const shared = this.#shared(revision, draws);
    switch (draws.below(11)) {
      case 0:
        return { commit: store.commit({ data, parents: [], action: undefined, time: at }), attack: 'plain tag' };
      case 1:
        return make('unsigned tag', { claim: record });
      case 2:
        return make('tag of a foreign key', signed(own, FOREIGN));
      case 3:
      case 4:
        if (stolen !== undefined) return make('tag of a revoked key', signed(own, stolen));
        return make('tag of a foreign key', signed(own, FOREIGN));
      case 5:
        // A copy of this repository is a separate repository in which the same server publishes.
        return make('tag of another repository', signed({ ...own, repository: 'copy' }, records.key));
      case 6:
        if (genuine !== undefined)
          return make('tag with a copied signature', { statement: { ...genuine, statement: own } });
        return make('tag with a broken signature', { statement: { statement: own, signature: '' } });
      case 7:
        if (genuine !== undefined) return make('tag with a copied statement', { statement: genuine });
        return make('tag with a broken signature', { statement: { statement: own, signature: `${records.key} x` } });
      case 8: {
        // The server publishes other packages with the same commits and numbers.
        const other = { ...own, package: 'dir/net/amf', workspace: 'w0' };
        return make('tag with the statement of another package', signed(other, records.key));
      }
      case 9:
        // What is the same in every way but for its id.
        if (shared !== undefined)
          return { commit: store.commit({ ...shared, time: at }), attack: 'copied shared commit' };
        return make('tag of a foreign key', signed(own, FOREIGN));
      default: {
        const closed = [{ type: 'Signed', requiredBy: ['Kptfile'], state: 'Missing' }];
        return make('tag of a foreign key', signed({ ...own, record: { ...record, gates: closed } }, FOREIGN));
      }
    }
  }

  /** A commit of the server with a publication of this number and one of another package. */
  #shared(revision: number, draws: Draws): CommitData | undefined {
    const isShared = ({ statement, action }: CommitData) =>
      action === 'approve' && statement?.statement.sharedCommit !== undefined;
    const all = [...this.#world.store.commits.values()].filter(isShared);
    return draws.of(all.filter((one) => one.revision === revision)) ?? draws.of(all);
  }

  #genuine(draws: Draws) {
    const all = [...this.#world.store.commits.values()].flatMap(({ statement, action }) => {
      const isServers =
        statement?.signature.startsWith('own-') === true && statement.statement.repository === REPOSITORY;
      return isServers && action === 'approve' ? [statement] : [];
    });
    return draws.of(all);
  }

  /**
   * Writes an object to the record ref of a revision; without object id if the ref is removed, or if there is no such
   * object.
   */
  record(workspace: string, { commit }: ModelRevision, draws: Draws): { oid: Oid | undefined; attack: string } {
    const { records, store } = this.#world;
    const data = store.commits.get(commit)?.data;
    const parent = this.#world.refs.get(recordRefOf(workspace));
    const record = this.#tempting(commit, data);
    const mark = records.trust.mark(scope(workspace));
    const sequence = (mark?.sequence ?? 0) + ([0, 1, 1, 1, 1000][draws.below(5)] ?? 1);
    const statement: RecordStatement = {
      ...{ statement: STATEMENT_VERSION, kind: 'record', repository: REPOSITORY, ...scope(workspace) },
      ...{ sequence: Math.max(1, sequence), previous: mark?.digest ?? null, record },
    };
    const put = (attack: string, more: Partial<RecordStatement>, signer: StatementFact['signer']) => {
      const head: RecordStatement = { ...statement, ...more };
      const fact = signedBy(head, signer);
      return { oid: records.add({ workspace, parent, record: head.record, fact }), attack };
    };
    const stolen = draws.of(records.revokedKeys);
    switch (draws.below(12)) {
      case 0:
      case 1:
        return { oid: undefined, attack: 'removed record' };
      case 2:
      case 3:
      case 4:
      case 5: {
        const older = [...records.commits].flatMap(([oid, known]) => (known.workspace === workspace ? oid : []));
        return { oid: draws.of(older), attack: 'replayed record' };
      }
      case 6: {
        const others = [...records.commits].flatMap(([oid, known]) => (known.workspace === workspace ? [] : oid));
        return { oid: draws.of(others), attack: 'record of another revision' };
      }
      case 7:
        return put('record of a foreign key', {}, FOREIGN);
      case 8:
        if (stolen === undefined) return put('record of a foreign key', {}, FOREIGN);
        return put('record of a revoked key', {}, stolen);
      case 9:
        return put('record of another repository', { repository: 'copy' }, records.key);
      case 10:
        return put('record with a broken signature', {}, null);
      default:
        return { oid: records.add({ workspace, parent, record, fact: undefined }), attack: 'unsigned record' };
    }
  }

  /** A record that would open every gate, and approve. */
  #tempting(commit: Oid, data: PackageData | undefined): RevisionRecord {
    const { at } = this.#world;
    const inputs = inputsOf(data);
    const approval = { content: inputs.content, tree: '', at, face: 'api' };
    return {
      ...{ version: 1, commit, contributors: [], proposal: { gates: [] } },
      verdicts: TYPES.map((type) => ({
        ...{ type, status: 'True', inputs: { content: inputs.content }, by: 'ann', groups: ['net'] },
        ...{ face: 'api', at, since: at, message: data?.conditions.get(type)?.message ?? '' },
      })),
      approvals: ['ann', 'bob', 'eve'].map((subject) => ({ subject, ...approval })),
      steps: [{ action: 'propose', by: 'mallory', face: 'api', at }],
    };
  }
}
