import {
  conditionsOf,
  contentOf,
  editKptfile,
  type Kptfile,
  type KptfileEdit,
  readKptfile,
} from '../../kptfile-schema/index.ts';
import { SluiceError } from '../../src/foundation/sluice-error.ts';
import { canonicalJson } from '../../src/foundation/text/canonical-json.ts';
import type { PackageContent } from '../../src/package/model/content/content.ts';
import type { PackageInputs } from '../../src/package/model/content/inputs.ts';
import { isYamlPath, type KrmObject, readKrmFile } from '../../src/package/model/krm/krm.ts';
import { parseConditionType } from '../../src/package/model/policy/condition-type.ts';
import type { PackageRevision } from '../../src/package/model/revision/package-revision.ts';
import type { ResolverSubject } from '../../src/package/plan/ports/resolver.ts';

const KPTFILE = 'Kptfile';

/** Placeholder for the digest of anything that a run has changed: no recorded digest equals it. */
const CHANGED = 'changed';

/** The subject of a revision as it is in Git. Throws InvalidInput if its Kptfile cannot be read. */
export function subjectOf(revision: PackageRevision, content: PackageContent): ResolverSubject {
  return WorkingPackage.open(revision, content).subject;
}

/** A package with the edits of a run so far. Immutable: an edit returns a new one, so a failed edit has no effect. */
export class WorkingPackage {
  readonly subject: ResolverSubject;
  readonly #original: PackageContent;
  readonly #byFile: ReadonlyMap<string, readonly KrmObject[]>;

  private constructor(
    original: PackageContent,
    revision: PackageRevision,
    kptfile: Kptfile,
    files: ReadonlyMap<string, Buffer>,
    byFile: ReadonlyMap<string, readonly KrmObject[]>,
  ) {
    this.#original = original;
    this.#byFile = byFile;
    const objects = [...byFile.keys()].sort().flatMap((file) => byFile.get(file) ?? []);
    this.subject = { revision, kptfile, files, objects, conditions: conditionsOf(kptfile) };
  }

  static open(revision: PackageRevision, content: PackageContent): WorkingPackage {
    const { kptfile, problem, name } = revision;
    if (kptfile === undefined)
      throw new SluiceError('InvalidInput', `the Kptfile of ${name} cannot be read: ${problem ?? 'there is none'}`);
    const byFile = Map.groupBy(content.objects(), (object) => object.file);
    return new WorkingPackage(content, revision, kptfile, content.files, byFile);
  }

  /** The package with other files and an edited Kptfile. Throws what the Kptfile editor throws. */
  with(
    edits: ReadonlyMap<string, string | null> = new Map(),
    kptfileEdits: readonly KptfileEdit[] = [],
  ): WorkingPackage {
    const { revision, files: old } = this.subject;
    let { kptfile } = this.subject;
    const files = new Map(old);
    const byFile = new Map(this.#byFile);
    for (const [path, text] of edits) {
      byFile.delete(path);
      if (text === null) files.delete(path);
      else files.set(path, Buffer.from(text));
      const data = files.get(path);
      if (data !== undefined && isYamlPath(path)) byFile.set(path, readKrmFile(path, data).objects);
    }
    if (kptfileEdits.length > 0) {
      const text = editKptfile(files.get(KPTFILE)?.toString('utf8') ?? '', kptfileEdits);
      const read = readKptfile(text);
      if (!read.ok) throw new SluiceError('InvalidInput', `Kptfile: ${read.error.message}`);
      files.set(KPTFILE, Buffer.from(text));
      kptfile = read.kptfile;
    }
    return new WorkingPackage(this.#original, revision, kptfile, files, byFile);
  }

  /** Paths that differ between two states of one package, without the Kptfile. */
  changedSince(before: ReadonlyMap<string, Buffer>): string[] {
    const { files } = this.subject;
    const paths = new Set([...before.keys(), ...files.keys()]);
    return [...paths].filter((path) => path !== KPTFILE && !sameData(before.get(path), files.get(path))).sort();
  }

  /** Digests as in Git for unchanged files, and a placeholder that equals no digest for changed ones. */
  get inputs(): PackageInputs {
    const original = this.#original;
    const untouched = this.changedSince(original.files).length === 0;
    return {
      content: untouched && !this.#kptfileContentChanged ? original.content : CHANGED,
      object: (type) => {
        const now = bodiesOf(this.subject.objects, type);
        if (untouched || now === bodiesOf(original.objects(), type)) return original.object(type);
        return now === '' ? undefined : CHANGED;
      },
      file: (path) => {
        const data = this.subject.files.get(path);
        if (sameData(original.files.get(path), data)) return original.file(path);
        return data === undefined ? undefined : CHANGED;
      },
    };
  }

  /** The content digest covers the Kptfile without its conditions and gates. */
  get #kptfileContentChanged(): boolean {
    const { kptfile, revision } = this.subject;
    const before = revision.kptfile;
    if (kptfile === before || before === undefined) return false;
    return canonicalJson(contentOf(kptfile)) !== canonicalJson(contentOf(before));
  }
}

/** The objects that a condition type names, without status, serialized. */
function bodiesOf(objects: readonly KrmObject[], type: string): string {
  const subject = parseConditionType(type);
  if (subject === undefined) return '';
  const bodies: string[] = [];
  for (const { apiVersion, kind, name, value } of objects) {
    if (apiVersion !== subject.apiVersion || kind !== subject.kind || name !== subject.name) continue;
    const { status: _status, ...body } = value;
    bodies.push(canonicalJson(body));
  }
  return bodies.sort().join('\n');
}

function sameData(a: Buffer | undefined, b: Buffer | undefined): boolean {
  return a === b || (a !== undefined && b !== undefined && a.equals(b));
}
