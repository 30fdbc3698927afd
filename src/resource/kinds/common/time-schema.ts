import { z } from 'zod';

const MICRO_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}(?:Z|[+-]\d\d:\d\d)$/;

/** The MicroTime of Kubernetes, whose clients cannot read any other form. */
export const microTimeSchema = z
  .string()
  .regex(MICRO_TIME, 'must be a time with microseconds, such as 2026-01-02T03:04:05.000000Z')
  .nullish()
  .meta({ format: 'date-time' });

/** A time that a server writes, RFC 3339. Null means no time, as clients written in Go send it. */
export const serverTimeSchema = z.string().nullish().meta({ format: 'date-time' });
