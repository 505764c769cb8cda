/* The server's connections: who they are, how long each may still take, who has to go.
 *
 * A connection's place is taken by bc_connections_admit() and given back by
 * bc_connections_remove(); its descriptor is libmicrohttpd's in between. Everything is of the
 * loop's thread. */
#ifndef BC_DAEMON_CONNECTION_H
#define BC_DAEMON_CONNECTION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct bc_connections;
struct bc_request;
struct MHD_Connection;

/* Refused ones, held for a moment so that the client can read why. */
#define BC_CONNECTIONS_REFUSED 32

struct bc_connection {
	struct bc_connections *all;
	struct bc_connection *next;
	struct bc_connection *before;
	struct MHD_Connection *mhd;
	int fd;
	bool is_owner;
	bool is_ending;             /* it was shut down; libmicrohttpd hasn't noticed yet */
	bool is_begun;              /* the first line of a request has come */
	bool has_bad_path;          /* with a zero byte in it */
	unsigned requests;          /* that were answered */
	uint64_t since_ns;          /* when it began, or last was given something to do */
	uint64_t due_ns;            /* a request must be whole then; 0: none is waited for */
	struct bc_request *request; /* under way, or NULL */
};

struct bc_connections {
	struct bc_connection *first;
	unsigned owners; /* of those that are not ending */
	unsigned others;
	unsigned count; /* of all */
	unsigned others_max;
	unsigned owners_max;
	uint64_t patience_ns;
	size_t long_bytes;      /* as bc_server_options.long_bytes */
	size_t body_bytes[2];   /* memory of the bodies of others' requests, and of the owner's */
	size_t answer_bytes[2]; /* the same of their long answers */
	struct {
		int fd;
		uint64_t until_ns;
	} refused[BC_CONNECTIONS_REFUSED];
	unsigned refused_count;
};

enum bc_admission {
	BC_ADMITTED,
	BC_ADMITTED_LATER, /* a place is soon to be had: ask again */
	BC_REFUSED,        /* the client was told why, and the descriptor is taken care of */
};

/* Finds a place for a descriptor that was accepted; *connection is set when it is admitted. */
enum bc_admission bc_connections_admit(struct bc_connections *all, int fd, bool is_owner,
	uint64_t now_ns, struct bc_connection **connection);

/* Gives the place back and frees the connection. The descriptor is not touched. */
void bc_connections_remove(struct bc_connections *all, struct bc_connection *connection);

/* Ends what took too long, and lets refused ones go. */
void bc_connections_look(struct bc_connections *all, uint64_t now_ns);

/* Lets all refused ones go. */
void bc_connections_close(struct bc_connections *all);

/* Answers with an error past libmicrohttpd, which must have nothing under way to the client. The
 * status with its words; the sentence is put into JSON as it stands. */
void bc_connection_tell(
	const struct bc_connection *connection, const char *status, const char *sentence);

/* How far a request is. begun: its first line is there; whole: nothing more is waited for; done:
 * answered, the next may come. */
void bc_connection_begun(
	struct bc_connections *all, struct bc_connection *connection, uint64_t now_ns);
void bc_connection_whole(struct bc_connection *connection, uint64_t now_ns);
void bc_connection_done(
	struct bc_connections *all, struct bc_connection *connection, uint64_t now_ns);

#endif
