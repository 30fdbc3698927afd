import { SluiceError } from '../../foundation/sluice-error.ts';

/** The error for a URL that the server does not serve. */
export function unknownResource(): SluiceError {
  return new SluiceError('NotFound', 'the server could not find the requested resource');
}

/** The resource has no such method; `methods` are those that it has. */
export function methodNotAllowed(
  methods: readonly string[],
  message = 'the server does not allow this method on the requested resource',
): SluiceError<{ readonly allow: string }> {
  return new SluiceError('Unsupported', message, { details: { allow: methods.join(', ') } });
}
