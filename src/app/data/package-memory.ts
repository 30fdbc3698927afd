import { z } from 'zod';
import { SluiceError } from '../../foundation/sluice-error.ts';
import type { FieldOwners } from '../../package/api/objects/field-owners.ts';
import type { RevisionVersions } from '../../package/api/table/revision-versions.ts';
import type { ManagedFieldsEntry } from '../../resource/object/object.ts';
import type { NoteTable } from '../../resource/storage/sqlite/note-table.ts';
import type { ObjectDatabase } from '../../resource/storage/sqlite/object-database.ts';

/** Object data about packages in the database: versions and field owners. It may be lost; Git contains all other data. */
export class PackageMemory {
  readonly owners: { readonly revisions: FieldOwners; readonly resources: FieldOwners };
  readonly versions: RevisionVersions & { quiet: boolean };

  /** `onError` gets what is damaged, once: it is deleted, as if it had never been noted. */
  constructor(database: Pick<ObjectDatabase, 'notes'>, onError?: (error: unknown) => void) {
    const owners = (kind: string) => {
      const table = `field-owners/${kind}`;
      return fieldOwners(database.notes(table), damageIn(table, onError));
    };
    this.owners = { revisions: owners('packagerevisions'), resources: owners('packagerevisionresources') };
    const versions = 'versions/packagerevisions';
    this.versions = revisionVersions(database.notes(versions), damageIn(versions, onError));
  }
}

/** Reports a note that cannot be read. */
type ReportDamage = (name: string) => void;

function damageIn(table: string, onError: ((error: unknown) => void) | undefined): ReportDamage {
  return (name) =>
    onError?.(
      new SluiceError(
        'Corrupt',
        `the note ${JSON.stringify(name)} of ${table} in the database is damaged and is ignored: field owners or versions of that revision begin again; check the disk`,
      ),
    );
}

const entriesSchema = z.array(
  z.looseObject({
    manager: z.string(),
    operation: z.enum(['Apply', 'Update']),
    apiVersion: z.string(),
    fieldsV1: z.looseObject({}),
  }),
);

function fieldOwners(notes: NoteTable, report: ReportDamage): FieldOwners {
  return {
    get: (uid) => {
      const text = notes.get(uid);
      if (text === undefined) return undefined;
      const entries = entriesIn(text);
      if (entries !== undefined) return entries;
      notes.delete(uid);
      report(uid);
      return undefined;
    },
    set: (uid, entries) => {
      if (entries === undefined) notes.delete(uid);
      else notes.set(uid, JSON.stringify(entries));
    },
  };
}

function entriesIn(text: string): ManagedFieldsEntry[] | undefined {
  try {
    const entries: unknown = JSON.parse(text);
    return entriesSchema.safeParse(entries).success ? (entries as ManagedFieldsEntry[]) : undefined;
  } catch {
    // No JSON.
    return undefined;
  }
}

/** A note is `<resourceVersion> <etag>`. */
function revisionVersions(notes: NoteTable, report: ReportDamage): RevisionVersions & { quiet: boolean } {
  return {
    quiet: true,
    get: (name) => {
      const text = notes.get(name);
      if (text === undefined) return undefined;
      const space = text.indexOf(' ');
      if (space <= 0) {
        notes.delete(name);
        report(name);
        return undefined;
      }
      return { resourceVersion: text.slice(0, space), etag: text.slice(space + 1) };
    },
    set: (name, { etag, resourceVersion }) => notes.set(name, `${resourceVersion} ${etag}`),
    delete: (name) => notes.delete(name),
    names: () => [...notes.entries()].map(([name]) => name),
  };
}
