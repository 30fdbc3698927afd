import type { FieldOwners } from '../../package/api/objects/field-owners.ts';
import type { RevisionVersions } from '../../package/api/table/revision-versions.ts';
import type { ManagedFieldsEntry } from '../../resource/object/object.ts';
import type { NoteTable } from '../../resource/storage/sqlite/note-table.ts';
import type { ObjectDatabase } from '../../resource/storage/sqlite/object-database.ts';

/** Object data about packages in the database: versions and field owners. It may be lost; Git contains all other data. */
export class PackageMemory {
  readonly owners: { readonly revisions: FieldOwners; readonly resources: FieldOwners };
  readonly versions: RevisionVersions & { quiet: boolean };

  constructor(database: ObjectDatabase) {
    this.owners = {
      revisions: fieldOwners(database.notes('field-owners/packagerevisions')),
      resources: fieldOwners(database.notes('field-owners/packagerevisionresources')),
    };
    this.versions = revisionVersions(database.notes('versions/packagerevisions'));
  }
}

function fieldOwners(notes: NoteTable): FieldOwners {
  return {
    get: (uid) => {
      const text = notes.get(uid);
      return text === undefined ? undefined : (JSON.parse(text) as ManagedFieldsEntry[]);
    },
    set: (uid, entries) => {
      if (entries === undefined) notes.delete(uid);
      else notes.set(uid, JSON.stringify(entries));
    },
  };
}

/** A note is `<resourceVersion> <etag>`. */
function revisionVersions(notes: NoteTable): RevisionVersions & { quiet: boolean } {
  return {
    quiet: true,
    get: (name) => {
      const text = notes.get(name);
      if (text === undefined) return undefined;
      const space = text.indexOf(' ');
      return { resourceVersion: text.slice(0, space), etag: text.slice(space + 1) };
    },
    set: (name, { etag, resourceVersion }) => notes.set(name, `${resourceVersion} ${etag}`),
    delete: (name) => notes.delete(name),
    names: () => [...notes.entries()].map(([name]) => name),
  };
}
