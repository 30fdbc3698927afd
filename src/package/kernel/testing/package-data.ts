import type { Condition } from '../../../../kptfile-schema/index.ts';
import type { Oid } from '../../../git/git-repository.ts';
import { type CommitFacts, formatCommitMessage, parseCommitMessage } from '../../commit-message.ts';
import type { PackageInputs } from '../../inputs.ts';
import type { RevisionRecord } from '../../record.ts';

export const PACKAGE = 'net/upf';
export const OBJECT_TYPE = 'ipam.resource.nephio.org/v1alpha1.IPClaim.n3';

/** What a package holds, as far as the kernel can tell packages apart. */
export interface PackageData {
  /** Stands for all files. */
  readonly content: number;
  /** Stands for the object that `OBJECT_TYPE` names; undefined if the package has none. */
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
  readonly workspace?: string;
  readonly revision?: number;
  readonly record?: RevisionRecord;
  readonly bypassed?: boolean;
}

export function inputsOf(data: PackageData | undefined): PackageInputs {
  return {
    content: `content ${data?.content} ${data?.object}`,
    object: (type) => (type === OBJECT_TYPE && data?.object !== undefined ? `object ${data.object}` : undefined),
    file: () => undefined,
  };
}

export function proposerOf(record: RevisionRecord | undefined): string | undefined {
  const last = record?.steps.at(-1);
  return last?.action === 'propose' ? last.by : undefined;
}

export function without(conditions: ReadonlyMap<string, Condition>, type: string): Map<string, Condition> {
  const rest = new Map(conditions);
  rest.delete(type);
  return rest;
}

/** Through the text of a commit message, as in Git. */
export function factsOf(commit: CommitData): CommitFacts {
  if (commit.action === undefined) return parseCommitMessage('pushed\n');
  return parseCommitMessage(
    formatCommitMessage('subject', {
      context: { actor: { name: 'ann' }, face: 'cli' },
      action: commit.action,
      ...(commit.workspace === undefined
        ? {}
        : {
            annotation: { package: `dir/${PACKAGE}`, workspaceName: commit.workspace, revision: `${commit.revision}` },
          }),
      ...(commit.record === undefined
        ? {}
        : {
            record: {
              verdicts: commit.record.verdicts,
              steps: commit.record.steps,
              content: inputsOf(commit.data).content,
              ...(commit.bypassed === true ? { gatesBypassed: true } : {}),
            },
          }),
    }),
  );
}
