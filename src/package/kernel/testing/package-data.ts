import type { Condition } from '../../../../kptfile-schema/index.ts';
import type { Oid } from '../../../git/git-repository.ts';
import type { PackageInputs } from '../../model/content/inputs.ts';
import {
  type CommitFacts,
  type FoldedRecord,
  formatCommitMessage,
  type PublicationStatement,
  parseCommitMessage,
} from '../../model/record/commit-message.ts';
import type { SignedStatement } from '../../trust/statement/statement.ts';
import { asWritten } from '../../trust/testing/fake-signatures.ts';

export const PACKAGE = 'net/upf';
/** The full path of the package in the repository. */
export const PATH = `dir/${PACKAGE}`;
/** Id of the repository. */
export const REPOSITORY = 'repository-1';
export const OBJECT_TYPE = 'ipam.resource.nephio.org/v1alpha1.IPClaim.n3';

export const TYPES = ['Checked', OBJECT_TYPE, 'Signed'] as const;
export const ACTORS = [
  { name: 'ann', groups: ['net'] },
  { name: 'bob', groups: [] },
  { name: 'controller:ipam', groups: ['controllers'] },
  { name: 'eve', groups: ['net'] },
] as const;

/** The content of a package, as far as the kernel distinguishes packages. */
export interface PackageData {
  /** Represents all files. */
  readonly content: number;
  /** Represents the object in `OBJECT_TYPE`; undefined if the package has none. */
  readonly object: number | undefined;
  readonly gates: readonly string[];
  readonly conditions: ReadonlyMap<string, Condition>;
  readonly problem: string | undefined;
}

/** A commit of the world. */
export interface CommitData {
  readonly data: PackageData | undefined;
  readonly parents: readonly Oid[];
  readonly action: string | undefined;
  /** Committer time, RFC 3339. */
  readonly time?: string;
  /** The following fields are those of an approval about its publication. */
  readonly workspace?: string;
  readonly revision?: number;
  readonly statement?: SignedStatement<PublicationStatement>;
  /** A record without a signature. */
  readonly claim?: FoldedRecord;
}

export function inputsOf(data: PackageData | undefined): PackageInputs {
  return {
    content: `content ${data?.content} ${data?.object}`,
    object: (type) => (type === OBJECT_TYPE && data?.object !== undefined ? `object ${data.object}` : undefined),
    file: () => undefined,
  };
}

/** Represents the id of the package's tree: its complete content, conditions and gates included. */
export function treeOf({ content, object, gates, conditions, problem }: PackageData): string {
  const texts = [...conditions.values()].map(({ type, status, message }) => `${type}=${status}:${message}`).sort();
  return [content, object, gates.join(), texts.join(), problem].join('/');
}

export function without(conditions: ReadonlyMap<string, Condition>, type: string): Map<string, Condition> {
  const rest = new Map(conditions);
  rest.delete(type);
  return rest;
}

/** Through the text of a commit message, as in Git. */
export function commitFactsOf({ action, workspace, revision, statement, claim }: CommitData): CommitFacts {
  if (action === undefined && statement === undefined) return parseCommitMessage('pushed\n');
  const annotation = workspace === undefined ? undefined : { package: PATH, workspaceName: workspace };
  const message = formatCommitMessage('subject', {
    context: { actor: { name: 'ann' }, face: 'cli' },
    action: action ?? 'merge',
    ...(annotation === undefined ? {} : { annotations: [{ ...annotation, revision: `${revision}` }] }),
    ...(statement === undefined ? {} : { statement: asWritten(statement) }),
  });
  return parseCommitMessage(claim === undefined ? message : `${message}Sluice-Record: ${JSON.stringify(claim)}\n`);
}
