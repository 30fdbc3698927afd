import type { Oid } from '../../../git/git-repository.ts';
import type { Actor, EntryPoint } from '../../../resource/object/request-context.ts';
import type { Action, MergedProposal } from '../../model/revision/revision-state.ts';

/** The parameters of a request besides its subject. */
export interface WorldRequest {
  readonly action: Action;
  readonly actor: Actor;
  readonly expectedCommit: Oid | undefined;
  readonly reason: string | undefined;
  readonly breakGlass: boolean;
  readonly merged?: MergedProposal | undefined;
  readonly byMerge?: boolean | undefined;
  /** An approval shares its commit with one of another package. */
  readonly isShared?: boolean;
}

/** Controllers are known by their names here. */
export function faceOf({ name }: Actor): EntryPoint {
  return name.startsWith('controller:') ? 'controller' : 'cli';
}
