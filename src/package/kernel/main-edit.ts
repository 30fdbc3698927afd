import type { EditedSides, PackageOnMain, Refusal, RevisionState } from '../model/revision/revision-state.ts';

/** Files of each side that a message names. */
const MAX_SHOWN_FILES = 5;

/**
 * True if an approval would replace an edit on the main branch that is kept nowhere else: the package there is neither what the revision
 * contains or is derived from, nor a publication, which its tag keeps. Of several revisions of a package each one is approved, as in Porch.
 * A package that was removed there is restored only by a revision that was based on the removal.
 */
export function isEdited(onMain: Omit<PackageOnMain, 'sides'>): boolean {
  const { tree, proposed, atBase, derivedFrom, published, deleted } = onMain;
  if (tree === proposed) return false;
  if (tree === undefined) return atBase !== undefined;
  return tree !== published && tree !== deleted && !derivedFrom.includes(tree);
}

/** True if the package on the main branch is a publication from after the revision was made: the revision does not contain it. */
export function isOvertaken({ tree, proposed, atBase, derivedFrom, published }: PackageOnMain): boolean {
  return tree !== undefined && tree === published && ![proposed, atBase, ...derivedFrom].includes(tree);
}

/** A revision, and the package that its approval replaces on the branch `main`. */
export interface EditFacts extends Pick<RevisionState, 'name' | 'lifecycle' | 'commit' | 'onMain'> {
  readonly main: string;
}

/** The conflict of a revision with the main branch, as the reason against its approval; undefined if there is none. */
export function refuseEdited({ name, lifecycle, commit, main, onMain }: EditFacts): Refusal | undefined {
  if (onMain === undefined || !isEdited(onMain)) return undefined;
  const { sides } = onMain;
  const did = onMain.tree === undefined ? 'removed from' : 'edited on';
  const how = sides === undefined ? '' : describeSides(sides, commit);
  const reject = lifecycle === 'Proposed' ? `"sluice rpkg reject ${name}", ` : '';
  return {
    code: 'Conflicted',
    message: `${name} conflicts with ${main}: its package was ${did} that branch${how}. An approval would replace the edit; to merge the edit into the draft, use ${reject}"sluice rpkg rebase ${name}", then propose it again`,
    ...(sides === undefined ? {} : { conflict: sides }),
  };
}

/**
 * The publication that an approval of the revision would undo. It is the reason against approvals by controllers, which cannot see what is lost;
 * users are warned.
 */
export function refuseOvertaken({ name, lifecycle, onMain }: Omit<EditFacts, 'main'>): Refusal | undefined {
  if (onMain?.later === undefined) return undefined;
  const { later } = onMain;
  const [steps, again] =
    lifecycle === 'Proposed'
      ? [`"sluice rpkg reject ${name}", then "sluice rpkg rebase ${name}"`, ', then propose it again']
      : [`"sluice rpkg rebase ${name}"`, ''];
  return {
    code: 'PublishedSince',
    message: `${later.name} was published as v${later.revision} after ${name} was made, and an approval of ${name} would undo what it changed in ${countFiles(later.files)}; to merge it into the draft, use ${steps}${again}`,
    later,
  };
}

function countFiles(files: readonly string[]): string {
  return `${files.length} ${files.length === 1 ? 'file' : 'files'} (${listed(files)})`;
}

function describeSides({ base, commits, filesOnMain, filesInRevision }: EditedSides, commit: string): string {
  const since = base === undefined ? '' : ` after ${base}, on which the revision is based`;
  const by = commits.length === 0 ? '' : `, by ${commits.join(' to ')}`;
  const both = filesOnMain.filter((file) => filesInRevision.includes(file));
  return `${since}${by} (${listed(filesOnMain)}); the revision at ${commit} changes ${listed(filesInRevision)}; both change ${listed(both)}`;
}

function listed(files: readonly string[]): string {
  if (files.length === 0) return 'no file';
  const more = files.length - MAX_SHOWN_FILES;
  return `${files.slice(0, MAX_SHOWN_FILES).join(', ')}${more > 0 ? ` and ${more} more` : ''}`;
}
