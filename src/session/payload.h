/* The collector library, built into the attacher. */
#ifndef INFERSCOPE_SESSION_PAYLOAD_H
#define INFERSCOPE_SESSION_PAYLOAD_H

extern const unsigned char payload_begin[], payload_end[];

#endif
