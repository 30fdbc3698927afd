import { isKptfilePath } from '../../package/merge/package-files.ts';
import { KPTFILE_REQUEST_ANNOTATIONS } from '../../package/model/revision/lifecycle-annotations.ts';
import type { Resource } from '../resource/resource.ts';

/**
 * The annotations of Kptfiles that request automatic proposal and approval, as they were before functions ran. Functions may come from the
 * upstream of a package, whose author cannot request approvals of its clones.
 */
export class ApprovalRequests {
  readonly #before = new Map<string, unknown>();

  constructor(resources: readonly Resource[]) {
    for (const resource of kptfilesIn(resources))
      for (const key of KPTFILE_REQUEST_ANNOTATIONS) {
        const value = resource.get(pathOf(key));
        if (value !== undefined) this.#before.set(idOf(resource, key), value);
      }
  }

  /** Resets the annotations to what they were; returns one note for each that a function changed. */
  restore(resources: readonly Resource[]): string[] {
    const notes: string[] = [];
    for (const resource of kptfilesIn(resources)) {
      const changed = KPTFILE_REQUEST_ANNOTATIONS.filter((key) => {
        const before = this.#before.get(idOf(resource, key));
        if (resource.get(pathOf(key)) === before) return false;
        if (before === undefined) resource.delete(pathOf(key));
        else resource.set(pathOf(key), before);
        return true;
      });
      if (changed.length > 0) notes.push(requestIgnored(resource.file, changed));
    }
    return notes;
  }
}

/** The note about requests that functions wrote. */
export function requestIgnored(file: string, keys: readonly string[]): string {
  return `${file}: what functions changed in ${keys.join(', ')} is ignored: functions cannot request approvals; a user can set the annotation on the package revision or in the Kptfile`;
}

function* kptfilesIn(resources: readonly Resource[]): Generator<Resource> {
  for (const resource of resources) if (isKptfilePath(resource.file)) yield resource;
}

function pathOf(key: string): readonly string[] {
  return ['metadata', 'annotations', key];
}

function idOf({ file, index }: Resource, key: string): string {
  return JSON.stringify([file, index, key]);
}
