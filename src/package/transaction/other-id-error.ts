import { SluiceError } from '../../foundation/sluice-error.ts';

/** Another process gave the repository a new id after a write was planned: its statements would not count. Nothing was written. */
export class OtherIdError extends SluiceError {
  constructor() {
    super('Conflict', 'nothing was written: the repository was given a new id meanwhile; try again');
    this.name = 'OtherIdError';
  }
}
