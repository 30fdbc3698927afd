import { createHash } from 'node:crypto';
import { positional, wantString } from '../library/arguments.ts';
import type { Builtin } from '../values/callable.ts';
import { moduleOf } from './module.ts';

function hashing(algorithm: 'md5' | 'sha1' | 'sha256'): Builtin['call'] {
  return (machine, args, named) => {
    positional(algorithm, args, named, 1);
    const text = wantString(algorithm, args[0] ?? null);
    machine.text(text.length);
    machine.step(20);
    return createHash(algorithm).update(text).digest('hex');
  };
}

export const HASH = moduleOf('hash', { md5: hashing('md5'), sha1: hashing('sha1'), sha256: hashing('sha256') });
