#include "capture/usb/board.h"

const char *bc_board_state_name(enum bc_board_state state)
{
	switch (state) {
	case BC_BOARD_DETACHED:
		return "detached";
	case BC_BOARD_OPENING:
		return "opening";
	case BC_BOARD_STREAMING:
		return "streaming";
	case BC_BOARD_STOPPING:
		return "stopping";
	case BC_BOARD_BACK_OFF:
		return "back-off";
	}
	return "unknown";
}
