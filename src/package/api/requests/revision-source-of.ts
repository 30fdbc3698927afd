import { SluiceError } from '../../../foundation/sluice-error.ts';
import type { PackageRevision as RevisionObject } from '../../../resource/kinds/porch/package-revision.ts';
import type { RevisionSource, UpstreamReference } from '../../upstream/revision-source.ts';
import { invalidRevision } from './requested-changes.ts';

type Task = NonNullable<RevisionObject['spec']['tasks']>[number];

/** Returns how a new object is created. Without a task it begins empty. */
export function revisionSourceOf(object: RevisionObject): RevisionSource {
  const tasks = object.spec.tasks ?? [];
  const [task] = tasks;
  if (tasks.length > 1)
    throw invalidRevision(object, ['spec', 'tasks'], tasks.length, 'task list must not contain more than one task');
  if (task === undefined) return { type: 'init' };
  switch (task.type) {
    case 'init':
      return initSource(object, task);
    case 'clone':
      return { type: 'clone', upstream: upstreamOf(object, task) };
    case 'edit':
      return { type: 'copy', source: part(object, task, 'edit').sourceRef.name };
    case 'upgrade': {
      const { oldUpstreamRef, newUpstreamRef, localPackageRevisionRef, strategy } = part(object, task, 'upgrade');
      return {
        type: 'upgrade',
        oldUpstream: oldUpstreamRef.name,
        newUpstream: newUpstreamRef.name,
        local: localPackageRevisionRef.name,
        ...(strategy === undefined ? {} : { strategy }),
      };
    }
    default:
      // Those of old histories, and what the server does by itself.
      throw invalidRevision(
        object,
        ['spec', 'tasks', 0, 'type'],
        task.type,
        'a package revision is created by a task of type init, clone, edit or upgrade',
      );
  }
}

/** Returns the names of the package revisions that a new one is created from. */
export function sourceNames(source: RevisionSource): string[] {
  if (source.type === 'copy') return [source.source];
  if (source.type === 'upgrade') return [source.oldUpstream, source.newUpstream, source.local];
  return source.type === 'clone' && 'revision' in source.upstream ? [source.upstream.revision] : [];
}

function initSource(object: RevisionObject, { init }: Task): RevisionSource {
  const { description, keywords, site, subpackage } = init ?? {};
  if (subpackage !== undefined && subpackage !== '')
    throw invalidRevision(
      object,
      ['spec', 'tasks', 0, 'init', 'subpackage'],
      subpackage,
      'packages are created as a whole',
    );
  return {
    type: 'init',
    ...(description === undefined ? {} : { description }),
    ...(keywords === undefined ? {} : { keywords }),
    ...(site === undefined ? {} : { site }),
  };
}

function upstreamOf(object: RevisionObject, task: Task): UpstreamReference {
  const { upstreamRef } = part(object, task, 'clone');
  const path = ['spec', 'tasks', 0, 'clone', 'upstreamRef'];
  if (upstreamRef.upstreamRef !== undefined) return { revision: upstreamRef.upstreamRef.name };
  if (upstreamRef.oci !== undefined || upstreamRef.type === 'oci')
    throw new SluiceError(
      'Unsupported',
      'packages cannot be cloned from OCI images; push the package to a Git repository',
    );
  if (upstreamRef.git === undefined)
    throw invalidRevision(object, path, undefined, 'upstreamRef.name of a package revision, or git, is required');
  const { repo, ref, directory, secretRef } = upstreamRef.git;
  // Clients written in Go send an empty name for none.
  const isNamed = secretRef !== undefined && secretRef.name !== '';
  return { git: { repo, ref, directory, ...(isNamed ? { secretRef } : {}) } };
}

/** The part of a task that its type names. */
function part<Type extends 'clone' | 'edit' | 'upgrade'>(
  object: RevisionObject,
  task: Task,
  type: Type,
): NonNullable<Task[Type]> {
  const value = task[type];
  if (value === undefined)
    throw invalidRevision(object, ['spec', 'tasks', 0, type], undefined, `a task of type ${type} needs this part`);
  return value as NonNullable<Task[Type]>;
}
