import { SluiceError } from '../../foundation/sluice-error.ts';
import type { FetchOptions, GitRemote, Ref, RefChange, RefUpdate } from '../git-repository.ts';
import type { NativeOptions } from './native-repository.ts';

export class Remotes {
  constructor(_gitDir: string, _options: NativeOptions) {}
  async fetch(
    _r: GitRemote,
    _o: FetchOptions,
    _l: (prefixes: readonly string[]) => Promise<Ref[]>,
  ): Promise<RefChange[]> {
    throw new SluiceError('Unsupported', 'not yet');
  }
  async list(_r: GitRemote, _p: readonly string[], _s?: AbortSignal): Promise<Ref[]> {
    throw new SluiceError('Unsupported', 'not yet');
  }
  async push(_r: GitRemote, _u: readonly RefUpdate[], _s?: AbortSignal): Promise<void> {
    throw new SluiceError('Unsupported', 'not yet');
  }
}
