import type { Repository } from '../../resource/kinds/porch/repository.ts';
import type { Stored } from '../../resource/object/object.ts';

/** The repositories behind a client, as far as a command has to see to them: a server does most of it by itself. */
export interface Repositories {
  /** Resolves once the packages of a new repository can be used; throws why they cannot, Timeout after `patience` milliseconds. */
  ready(name: string, patience?: number): Promise<void>;
  /** Reads a repository again now; throws if that fails. */
  sync(name: string): Promise<void>;
  /** The object with the status that it has now, and why the repository cannot be used, if it cannot. */
  look(object: Stored<Repository>): Promise<{ readonly object: Repository; readonly problem?: string }>;
}
